"""Orders in which blocks are placed, made of the numbers that describe each block."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from solvers.place.bounds import loads
from solvers.problem.reduce import Column, Task

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

ORDERS = ("SWA", "TWA", "TAW", "WAT", "AWT", "BWS", "B")
"""The orders that greedy tries, each a list of keys that break each other's ties."""


def order_of(features: Features, name: str) -> Column:
    """Block indices in a named order; ties by index."""
    return np.lexsort([KEYS[letter](features) for letter in reversed(name)])


OPENING = (
    ("death", 1.0, 0.0),
    ("birth", 1.0, 1.0),
    ("total", 1.0, 2.0),
    ("total", 1.0, 0.0),
    ("birth", 1.0, 0.0),
    ("free", 1.0, 1.0),
    ("death", 1.0, 2.0),
    ("total", 1.0, 1.0),
    ("birth", 1.0, 0.5),
    ("free", 0.3, 1.0),
    ("total", 1.0, 10.0),
    ("total", 0.0, 1.0),
)
"""What comes first, the power of the width, and that of the size: orders with which hard instances of many kinds were
seen to be solved, few of them by more than one."""

OPENING_NOISE = (0.0, 0.03, 0.03, 0.1, 0.1, 0.3)


def drawn_order(features: Features, number: int, seed: int) -> tuple[str, Column]:
    """The ``number``-th of an endless list of orders, and what it is called.

    A block's rank is a product of powers of its features and of noise, after its birth, its death or the total where
    these come first. The list opens with orders that are often good; then all is drawn at random. It depends on
    nothing but the seed.
    """
    draw = random.Random(f"{seed}/{number}")
    turn, place = divmod(number, len(OPENING))
    total = 0.0
    if turn < len(OPENING_NOISE):
        (first, width, size), spread = OPENING[place], OPENING_NOISE[turn]
    else:
        first = draw.choice(("birth", "death", "total", "free", "free"))
        width = draw.choice((0.3, 1.0, 1.0, 1.0) if first == "free" else (0.0, 1.0, 1.0, 1.0))
        size = draw.choice((0.0, 0.0, 0.3, 0.5, 1.0, 1.0, 2.0, 3.0, 10.0))
        total = draw.choice((0.0, 0.0, 1.0, 3.0))
        spread = draw.choice((0.03, 0.1, 0.3, 1.0) if first in ("birth", "death") else (0.0, 0.03, 0.1, 0.3))
    rest = _noise(draw, len(features.size), spread)
    rest -= width * np.log(features.width) + size * np.log(features.size)
    name = f"{first} W{width:g} S{size:g}"
    match first:
        case "birth":
            return name, np.lexsort([rest, features.start])
        case "death":
            return name, np.lexsort([rest, features.span - features.start - features.width])
        case "total":
            return name, np.lexsort([rest, -features.total])
        case _:
            key = np.round(rest - total * np.log(features.total), 9)
            return f"{name} T{total:g}", np.argsort(key, kind="stable")


def _noise(draw: random.Random, n: int, spread: float) -> Real:
    """Normal noise; `RandomState` never changes its stream."""
    return np.random.RandomState(draw.getrandbits(32)).normal(0.0, 1.0, n) * spread
