"""Orders in which blocks are placed, made of the numbers that describe each block."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from solvers.bounds import loads
from solvers.reduce import Column, Task

Real = NDArray[np.float64]


class Features:
    """Per block: ``total`` (largest load of a step it lives in, units), ``width`` (steps from its first to its last),
    ``area`` (units times steps), ``size`` (units), ``start`` (step)."""

    def __init__(self, task: Task) -> None:
        r = task.rects
        height, width = r.high - r.low, r.end - r.start
        self.total = np.maximum.reduceat(_most(loads(task), r.start, r.end), r.first)
        self.start = np.minimum.reduceat(r.start, r.first)
        self.width = np.maximum.reduceat(r.end, r.first) - self.start
        self.area = np.add.reduceat(height.astype(np.float64) * width, r.first)
        self.size = np.add.reduceat(height, r.first)
        self.span = len(task.steps)


def _most(values: Column, start: Column, end: Column) -> Column:
    """The largest of ``values[start:end]`` for each range: a table of the maxima of all powers of two of values."""
    level = np.frexp((end - start).astype(np.float64))[1] - 1  # the largest power of two within each range
    out = np.empty(len(start), dtype=np.int64)
    table, width = values, 1
    for power in range(int(level.max()) + 1):
        mine = level == power
        out[mine] = np.maximum(table[start[mine]], table[end[mine] - width])
        table = np.maximum(table[:-width], table[width:])
        width *= 2
    return out


KEYS = {
    "T": lambda f: -f.total,
    "W": lambda f: -f.width,
    "A": lambda f: -f.area,
    "S": lambda f: -f.size,
    "B": lambda f: f.start,
}
"""Letters as in MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
Learning", ASPLOS 2023): T section total, W width in time, A area, largest first; and S size, largest first; B birth,
earliest first."""

ORDERS = ("SWA", "TWA", "TAW", "WAT", "AWT", "BWS")
"""The orders that greedy tries, each a list of keys that break each other's ties."""


def order_of(features: Features, name: str) -> Column:
    """Block indices in a named order; ties by index."""
    return np.lexsort([KEYS[letter](features) for letter in reversed(name)])


def drawn_order(features: Features, number: int, seed: int) -> tuple[str, Column]:
    """The ``number``-th of an endless list of orders drawn at random, and what it is called.

    A block's rank is a product of powers of its features and of noise, after its birth, its death or the total where
    these come first. The powers are drawn as well, from those with which searches were seen to succeed on instances
    of many kinds. The list depends on nothing but the seed.
    """
    draw = random.Random(f"{seed}/{number}")
    total, width, size = np.log(features.total), np.log(features.width), np.log(features.size)
    family = draw.random()
    noise = _noise(draw, len(size), draw.choice((0.03, 0.1, 0.3, 1.0) if family < 0.4 else (0.0, 0.03, 0.1, 0.3)))
    if family < 0.4:
        power = draw.choice((0.0, 0.0, 0.5, 1.0, 2.0))
        late = draw.random() < 0.5
        first = features.span - features.start - features.width if late else features.start
        return f"{'death' if late else 'birth'} W1 S{power:g}", np.lexsort([noise - width - power * size, first])
    if family < 0.6:
        power = draw.choice((0.0, 0.3, 1.0, 2.0, 3.0))
        return f"total W1 S{power:g}", np.lexsort([noise - width - power * size, -features.total])
    powers = [draw.choice(some) for some in ((0.0, 0.0, 1.0, 3.0), (0.0, 0.3, 1.0, 1.0), (0.0, 0.3, 1.0, 1.0, 3.0, 10.0))]
    birth = draw.choice((0.0, 0.0, 0.0, 0.0, 1.0, -1.0))
    key = noise - powers[0] * total - powers[1] * width - powers[2] * size + birth * features.start / features.span
    name = "T{:g} W{:g} S{:g}".format(*powers)
    return f"{name} B{birth:g}", np.argsort(np.round(key, 9), kind="stable")


def _noise(draw: random.Random, n: int, spread: float) -> Real:
    """Normal noise; `RandomState` never changes its stream."""
    return np.random.RandomState(draw.getrandbits(32)).normal(0.0, 1.0, n) * spread
