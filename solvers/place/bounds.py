"""Lower bounds: floors that no plan can go below, and certificates of them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from solvers.problem.groups import Group
from solvers.problem.problem import Problem
from solvers.problem.reduce import Column, Task, reduce_groups
from solvers.problem.result import Certificate


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven floor of the peak in bytes, and the step at which it can be checked by summing (None: a single
    buffer's own end)."""

    value: int
    step: int | None


def loads(task: Task) -> Column:
    """Total of what is live in each compressed step, units."""
    r = task.rects
    load = np.zeros(len(task.steps) + 1, dtype=np.int64)
    np.add.at(load, r.start, r.high - r.low)
    np.subtract.at(load, r.end, r.high - r.low)
    return np.cumsum(load)[:-1]


def load_bound(task: Task) -> Bound:
    """Largest total of what is live in one step.

    Rounded sizes count in full but for the topmost rectangle, whose rounding may stick out above the peak.
    """
    load = loads(task) * task.unit
    own = int((np.maximum(task.base, 0) * task.unit + task.top).max())
    if task.rects.pad.any():
        load -= _most_pad(task)
    at = int(np.argmax(load))
    value = int(load[at])
    return Bound(own, None) if own > value else Bound(value, int(task.steps[at]))


def problem_bound(problem: Problem) -> int:
    """The load bound of a problem with its required colocations, bytes."""
    tasks = reduce_groups(problem.groups(problem.required))
    return max((load_bound(t).value for t in tasks), default=0)


def heaviest_step(groups: Sequence[Group]) -> tuple[int, int]:
    """The first step in which most bytes are needed, and how many; (0, 0) if none ever are.

    Sizes count as they are: it may be below `load_bound`, which knows what alignments cost.
    """
    change: dict[int, int] = defaultdict(int)
    for g in groups:
        for s in g.segments:
            change[s.start] += s.high - s.low
            change[s.end] -= s.high - s.low
    steps = sorted(change)
    loads = list(accumulate(change[t] for t in steps))
    most = max(loads, default=0)
    return (steps[loads.index(most)], most) if most else (0, 0)


def _most_pad(task: Task) -> Column:
    """The largest rounding of what is live in each compressed step, bytes."""
    r = task.rects
    most = np.zeros(len(task.steps), dtype=np.int64)
    order = np.argsort(r.start, kind="stable")
    rows = list(zip(r.start[order].tolist(), r.end[order].tolist(), r.pad[order].tolist(), strict=True))
    live: list[tuple[int, int]] = []  # (-pad, end)
    n = 0
    for t in range(len(most)):
        while n < len(rows) and rows[n][0] == t:
            heapq.heappush(live, (-rows[n][2], rows[n][1]))
            n += 1
        while live and live[0][1] <= t:
            heapq.heappop(live)
        most[t] = -live[0][0] if live else 0
    return most


def certificate(groups: Sequence[Group], task: Task) -> Certificate:
    """What makes the load bound of a task: its step, and the bytes that each buffer needs there.

    They add up to the bound: with alignments each size counts rounded up to the common grid of all addresses, but for
    the one that is rounded most, which may lie on top.
    """
    bound = load_bound(task)
    if bound.step is None:
        k = int(np.argmax(np.maximum(task.base, 0) * task.unit + task.top))
        members = groups[int(task.group[k])].members
        return Certificate(None, ((max(members, key=lambda m: m[1])[0], bound.value),))
    t = int(np.searchsorted(task.steps, bound.step))
    r = task.rects
    live = np.flatnonzero((r.start <= t) & (t < r.end))
    top = int(live[np.argmax(r.pad[live])])
    rows = []
    for n in live.tolist():
        group = groups[int(task.group[r.block[n]])]
        segment = group.segments[n - int(r.first[r.block[n]])]
        size = int(r.high[n] - r.low[n]) * task.unit - (int(r.pad[n]) if n == top else 0)
        rows.append((segment.writer, size))
    return Certificate(bound.step, tuple(sorted(rows, key=lambda row: (-row[1], row[0]))))
