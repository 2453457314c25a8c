"""First-fit in several orders, and the numbers that the orders are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from solvers.reduce import Block, Rect, Task

Key = Callable[["Features", int], tuple[int, ...]]


class Features:
    """Per block: ``total`` (largest load of a step it lives in), ``width`` (steps), ``area``, ``size``."""

    def __init__(self, task: Task) -> None:
        self.blocks = task.blocks
        load = np.zeros(len(task.steps) + 1)
        for b in task.blocks:
            for r in b.rects:
                load[r.start] += r.high - r.low
                load[r.end] -= r.high - r.low
        load = np.cumsum(load)
        self.total = [int(max(load[r.start : r.end].max() for r in b.rects)) for b in task.blocks]
        self.width = [b.end - b.start for b in task.blocks]
        self.area = [b.area for b in task.blocks]
        self.size = [sum(r.high - r.low for r in b.rects) for b in task.blocks]
        self.start = [b.start for b in task.blocks]


ORDERS: dict[str, Key] = {
    # Letters as in MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
    # Learning", ASPLOS 2023): T section total, W width in time, A area; S is size. Largest first.
    "SWA": lambda f, k: (-f.size[k], -f.width[k], -f.area[k]),
    "TWA": lambda f, k: (-f.total[k], -f.width[k], -f.area[k]),
    "TAW": lambda f, k: (-f.total[k], -f.area[k], -f.width[k]),
    "WAT": lambda f, k: (-f.width[k], -f.area[k], -f.total[k]),
    "AWT": lambda f, k: (-f.area[k], -f.width[k], -f.total[k]),
    "time": lambda f, k: (f.start[k], -f.width[k], -f.size[k]),
}


def order_of(features: Features, name: str) -> list[int]:
    """Block indices in a named order."""
    key = ORDERS[name]
    return sorted(range(len(features.blocks)), key=lambda k: (*key(features, k), k))


def pinned_collide(task: Task) -> bool:
    """Do two pinned blocks overlap? Then no plan exists."""
    fixed = [(b.base + r.low, b.base + r.high, r) for b in task.blocks if b.base is not None for r in b.rects]
    fixed.sort(key=lambda x: x[0])
    for n, (_, high, r) in enumerate(fixed):
        for low2, _, r2 in fixed[n + 1 :]:
            if low2 >= high:
                break
            if r.start < r2.end and r2.start < r.end:
                return True
    return False


def portfolio(task: Task) -> Iterator[tuple[str, list[int]]]:
    """First-fit placements, ``(name, bases)``, one per order; fewer for large tasks, where each takes long."""
    features = Features(task)
    names = list(ORDERS) if len(task.blocks) <= 4000 else ["SWA", "TAW"]
    for name in names:
        yield f"first-fit {name}", first_fit(task, order_of(features, name))


def first_fit(task: Task, order: Sequence[int]) -> list[int]:
    """Place the blocks one by one at the lowest base that is free; pinned blocks first.

    Parameters
    ----------
    task : Task
    order : sequence of int
        Every block index once.

    Returns
    -------
    list of int
        Bases in units, by block.
    """
    space = _Space(sum(len(b.rects) for b in task.blocks))
    bases = [0] * len(task.blocks)
    pinned = [k for k in order if task.blocks[k].base is not None]
    for k in pinned + [k for k in order if task.blocks[k].base is None]:
        b = task.blocks[k]
        bases[k] = space.lowest(b) if b.base is None else b.base
        for r in b.rects:
            space.add(r, bases[k])
    return bases


class _Space:
    """Placed rectangles, as columns."""

    def __init__(self, n: int) -> None:
        self.columns = np.zeros((4, n), dtype=np.int64)  # start, end, low, high
        self.n = 0

    def add(self, r: Rect, base: int) -> None:
        self.columns[:, self.n] = (r.start, r.end, base + r.low, base + r.high)
        self.n += 1

    def lowest(self, b: Block) -> int:
        """Lowest base at which no rectangle of the block meets a placed one.

        A placed ``[low, high)`` forbids bases strictly between ``low - r.high`` and ``high - r.low``.
        """
        start, end, low, high = self.columns[:, : self.n]
        over, under = [], []
        for r in b.rects:
            met = (start < r.end) & (r.start < end)
            over.append(low[met] - r.high)
            under.append(high[met] - r.low)
        lows, highs = np.concatenate(over), np.concatenate(under)
        by_low = np.argsort(lows, kind="stable")
        lows = lows[by_low]
        free = np.maximum.accumulate(np.concatenate(([0], highs[by_low])))
        free = -(-free // b.step) * b.step
        first = np.nonzero(lows >= free[:-1])[0]
        return int(free[first[0]] if len(first) else free[-1])
