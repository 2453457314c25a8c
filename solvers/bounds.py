"""Lower bounds: floors that no plan can go below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.reduce import Task


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven floor of the peak in bytes, and the step at which it can be checked by summing (None: a single
    buffer's own end)."""

    value: int
    step: int | None


def load_bound(task: Task) -> Bound:
    """Largest total of what is live in one step.

    Rounded sizes count in full but for the topmost rectangle, whose rounding may stick out above the peak.
    """
    rects = [r for b in task.blocks for r in b.rects]
    load = np.zeros(len(task.steps) + 1, dtype=np.int64)
    np.add.at(load, [r.start for r in rects], [r.high - r.low for r in rects])
    np.subtract.at(load, [r.end for r in rects], [r.high - r.low for r in rects])
    load = np.cumsum(load)[:-1]
    own = max(task.unit * (b.base or 0) + b.top for b in task.blocks)
    most = int(load.max())
    value, at = 0, 0
    pads = any(r.pad for r in rects)
    worst = max((r.pad for r in rects), default=0)
    for t in np.nonzero(load * task.unit > most * task.unit - worst - 1)[0]:
        pad = max(r.pad for r in rects if r.start <= t < r.end) if pads else 0
        if (here := int(load[t]) * task.unit - pad) > value:
            value, at = here, int(t)
    return Bound(own, None) if own > value else Bound(value, task.steps[at])
