"""First-fit in several orders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from solvers.place.orders import ORDERS, Features, order_of
from solvers.problem.reduce import Column, Task

MANY = 20_000
"""Of more blocks than this, only the order that is best on large traces is tried; a fifth of it without the native
core."""


def pinned_collide(task: Task) -> bool:
    """Do two pinned blocks overlap? Then no plan exists."""
    r = task.rects
    pinned = np.flatnonzero(task.base[r.block] >= 0)
    base = task.base[r.block[pinned]]
    columns = (base + r.low[pinned], base + r.high[pinned], r.start[pinned], r.end[pinned])
    rows = sorted(zip(*(x.tolist() for x in columns), strict=True))
    for n, (_, high, start, end) in enumerate(rows):
        for low2, _, start2, end2 in rows[n + 1 :]:
            if low2 >= high:
                break
            if start < end2 and start2 < end:
                return True
    return False


def portfolio(task: Task) -> Iterator[tuple[str, Column]]:
    """First-fit placements, ``(name, bases)``, one per order; one alone for large tasks."""
    features = Features(task)
    few = len(task) > (MANY if task.instance is not None else MANY // 5)
    for name in ORDERS[:1] if few else ORDERS:
        yield f"first-fit {name}", first_fit(task, order_of(features, name))


def first_fit(task: Task, order: Column) -> Column:
    """Place the blocks one by one at the lowest base that is free; pinned blocks first.

    Parameters
    ----------
    task : Task
    order : array of int
        Every block index once.

    Returns
    -------
    array of int
        Bases in units, by block.
    """
    if task.instance is not None:
        return np.array(task.instance.first_fit(order), dtype=np.int64)
    space = _Space(task)
    bases = np.zeros(len(task), dtype=np.int64)
    pinned = task.base[order] >= 0
    for k in [*order[pinned].tolist(), *order[~pinned].tolist()]:
        bases[k] = space.lowest(k) if task.base[k] < 0 else task.base[k]
        space.add(k, int(bases[k]))
    return bases


class _Space:
    """Placed rectangles, as columns: the way without the native core."""

    def __init__(self, task: Task) -> None:
        self.step = task.step.tolist()
        r = task.rects
        self.first = [*r.first.tolist(), len(r.block)]
        self.rects = list(zip(*(x.tolist() for x in (r.start, r.end, r.low, r.high)), strict=True))
        self.columns = np.zeros((4, len(r.block)), dtype=np.int64)  # start, end, low, high
        self.n = 0

    def add(self, k: int, base: int) -> None:
        for start, end, low, high in self.rects[self.first[k] : self.first[k + 1]]:
            self.columns[:, self.n] = (start, end, base + low, base + high)
            self.n += 1

    def lowest(self, k: int) -> int:
        """Lowest base at which no rectangle of the block meets a placed one.

        A placed ``[low, high)`` forbids bases strictly between ``low - r.high`` and ``high - r.low``.
        """
        starts, ends, lows, highs = self.columns[:, : self.n]
        over, under = [], []
        for start, end, low, high in self.rects[self.first[k] : self.first[k + 1]]:
            met = (starts < end) & (start < ends)
            over.append(lows[met] - high)
            under.append(highs[met] - low)
        low_ends, high_ends = np.concatenate(over), np.concatenate(under)
        by_low = np.argsort(low_ends, kind="stable")
        low_ends = low_ends[by_low]
        free = np.maximum.accumulate(np.concatenate(([0], high_ends[by_low])))
        free = -(-free // self.step[k]) * self.step[k]
        first = np.nonzero(low_ends >= free[:-1])[0]
        return int(free[first[0]] if len(first) else free[-1])
