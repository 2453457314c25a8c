"""Lower bounds: floors that no plan can go below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.groups import Group
from solvers.problem import Problem
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


def choice_bound(problem: Problem) -> int:
    """A floor of the peak for every choice of optional colocations, bytes.

    Groups that an optional colocation may bring together count once, with the largest of them in each step: whatever
    is shared, that one needs all its bytes.
    """
    import networkx as nx

    groups = problem.groups(problem.required)
    of = {i: k for k, g in enumerate(groups) for i, _ in g.members}
    joined = nx.utils.UnionFind(range(len(groups)))
    for c in problem.colocations:
        joined.union(of[c.part], of[c.whole])
    clusters: dict[int, list[Group]] = {}
    for k, g in enumerate(groups):
        if g.segments:
            clusters.setdefault(joined[k], []).append(g)
    times = sorted({s.start for g in groups for s in g.segments})
    where = {t: k for k, t in enumerate(times)}
    total = np.zeros(len(times) + 1, dtype=np.int64)
    for cluster in clusters.values():
        total += np.max([_profile(g, where, times) for g in cluster], axis=0)
    own = max(((g.base if g.base is not None else g.residue) + g.extent for g in groups), default=0)
    return max(own, int(total.max(initial=0)))


def _profile(g: Group, where: dict[int, int], times: Sequence[int]) -> np.ndarray:
    load = np.zeros(len(times) + 1, dtype=np.int64)
    ends = np.searchsorted(times, [s.end for s in g.segments])
    for s, end in zip(g.segments, ends, strict=True):
        load[where[s.start] : end] += s.high - s.low
    return load
