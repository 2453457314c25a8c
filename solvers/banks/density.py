"""A first assignment to banks: by density, with an eye on the loads."""

from __future__ import annotations

import numpy as np

from solvers.banks.limits import Limits


def by_density(ground: Limits, slack: float) -> list[int]:
    """Each group in the first bank whose loads allow it, those that weigh most per byte and step before the others.

    Parameters
    ----------
    ground : Limits
    slack : float
        The part of each bank that may be used.

    Returns
    -------
    list of int
        The bank of each group: the last that it may be in, where no load allows it.
    """
    steps = np.unique([s.start for g in ground.groups for s in g.segments])
    loads = [np.zeros(len(steps), dtype=np.int64) for _ in ground.banks]
    spans = []
    for g in ground.groups:
        ends = np.searchsorted(steps, [(s.start, s.end) for s in g.segments]) if g.segments else ()
        spans.append([(a, b, s.high - s.low) for (a, b), s in zip(ends, g.segments, strict=True)])
    areas = [sum((b - a) * float(size) for a, b, size in span) for span in spans]
    density = [w / area if area else 0.0 for w, area in zip(ground.weights, areas, strict=True)]
    bank_of = [banks[-1] for banks in ground.allowed]
    for n in sorted(range(len(spans)), key=lambda n: (len(ground.allowed[n]) > 1, -density[n], -areas[n])):
        for k in ground.allowed[n]:
            for a, b, size in spans[n]:
                loads[k][a:b] += size
            high = max((int(loads[k][a:b].max()) for a, b, _ in spans[n]), default=0)
            if high <= slack * ground.banks[k].size or k == ground.allowed[n][-1]:
                bank_of[n] = k
                break
            for a, b, size in spans[n]:
                loads[k][a:b] -= size
    return bank_of
