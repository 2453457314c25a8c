"""Exact reductions: from groups to the smallest equivalent integer problem, and back.

- Empty buffers drop out (they get a legal offset on the way back).
- Addresses are divided by their common unit. Segments may be rounded up to it where alignments force every base onto
  a grid; the peak is always measured with the true top of each group.
- Only the steps at which something starts are kept.
- Blocks that share no step, directly or through others, are solved apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.problem.groups import Group

if TYPE_CHECKING:
    from solvers.core._core import Instance

Column = NDArray[np.int64]

NATIVE_LIMIT = 2.0**58
"""Where all sizes, steps and the highest pin add up to more bytes, the native core is not used: it adds a few of them
in 64 bits."""


@dataclass(frozen=True, slots=True)
class Rect:
    """Address range ``[low, high)`` in units relative to the block's base, needed in compressed steps
    ``[start, end)``; ``pad`` is how many bytes of it are rounding."""

    low: int
    high: int
    start: int
    end: int
    pad: int


@dataclass(frozen=True, slots=True)
class Block:
    """A group, reduced.

    Attributes
    ----------
    group : int
        Index of the group it came from.
    rects : tuple of Rect
    step : int
        The base is a multiple of it, units.
    base : int or None
        Pinned base, units.
    top : int
        True end of the topmost member relative to the base, bytes.
    """

    group: int
    rects: tuple[Rect, ...]
    step: int
    base: int | None
    top: int

    @property
    def start(self) -> int:
        """First step."""
        return min(r.start for r in self.rects)

    @property
    def end(self) -> int:
        """Step after the last."""
        return max(r.end for r in self.rects)


@dataclass(frozen=True)
class Rects:
    """Rectangles as columns: the block of each, sorted, and what `Rect` says of it."""

    block: Column
    low: Column
    high: Column
    start: Column
    end: Column
    pad: Column

    def take(self, which: NDArray[np.bool_]) -> Rects:
        """Some of them, the blocks numbered anew from 0."""
        block = np.unique(self.block[which], return_inverse=True)[1]
        return Rects(block, self.low[which], self.high[which], self.start[which], self.end[which], self.pad[which])

    @cached_property
    def first(self) -> Column:
        """Index of the first rectangle of each block."""
        return np.flatnonzero(np.diff(self.block, prepend=-1))


@dataclass(frozen=True, eq=False)
class Task:
    """Blocks that must be placed together, as columns.

    Attributes
    ----------
    group, step, base, top : arrays, by block
        As in `Block`; ``base`` is -1 where it is free.
    rects : Rects
    unit : int
        Bytes.
    steps : array
        The step that each compressed step stands for.
    """

    group: Column
    step: Column
    base: Column
    top: Column
    rects: Rects
    unit: int
    steps: Column

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The same as objects, for models that are built block by block."""
        r = self.rects
        columns = zip(*(x.tolist() for x in (r.block, r.low, r.high, r.start, r.end, r.pad)), strict=True)
        rects: list[list[Rect]] = [[] for _ in range(len(self))]
        for k, low, high, start, end, pad in columns:
            rects[k].append(Rect(low, high, start, end, pad))
        rows = zip(*(x.tolist() for x in (self.group, self.step, self.base, self.top)), strict=True)
        return tuple(
            Block(group, tuple(own), step, None if base < 0 else base, top)
            for own, (group, step, base, top) in zip(rects, rows, strict=True)
        )

    @cached_property
    def instance(self) -> Instance | None:
        """The same for the native core; None where that is not built, or the numbers are too large for it."""
        from solvers.core import core

        largest = float(self.top.sum(dtype=float) + self.base.max() * float(self.unit) + self.step.sum() * self.unit)
        if core is None or largest > NATIVE_LIMIT:
            return None
        r = self.rects
        steps = len(self.steps)
        return core.Instance(r.block, r.low, r.high, r.start, r.end, self.step, self.base, self.top, self.unit, steps)

    def peak(self, bases: Sequence[int] | Column) -> int:
        """Peak of a placement (bases in units), bytes."""
        return int(np.max(np.asarray(bases, dtype=np.int64) * self.unit + self.top, initial=0))

    def highest_base(self, block: Block, capacity: int) -> int:
        """Largest base (units) at which the block ends within ``capacity`` bytes; negative if none."""
        return (capacity - block.top) // self.unit // block.step * block.step


def reduce_groups(groups: Sequence[Group]) -> tuple[Task, ...]:
    """Reduce groups to independent tasks.

    Parameters
    ----------
    groups : sequence of Group
        Those without segments are left out.

    Returns
    -------
    tuple of Task
        By descending load, so that the hardest comes first.
    """
    group = np.array([k for k, g in enumerate(groups) if g.segments], dtype=np.int64)
    if not len(group):
        return ()
    real = [g for g in groups if g.segments]
    modulus, residue = _column(g.modulus for g in real), _column(g.residue for g in real)
    base = _column(-1 if g.base is None else g.base for g in real)
    extent = _column(g.extent for g in real)
    block = np.repeat(np.arange(len(real)), [len(g.segments) for g in real])
    low, high = _column(s.low for g in real for s in g.segments), _column(s.high for g in real for s in g.segments)
    start, end = _column(s.start for g in real for s in g.segments), _column(s.end for g in real for s in g.segments)
    low, high = low + residue[block], high + residue[block]
    pinned = base >= 0
    grid = math.gcd(int(np.gcd.reduce(modulus)), int(np.gcd.reduce(low)))
    top = -(-high // grid)
    common = _common_unit(low // grid, top, (base - residue)[pinned] // grid, modulus // grid)
    unit = grid * common
    steps = np.unique(start)
    rects = Rects(
        block,
        low // unit,
        top // common,
        np.searchsorted(steps, start),
        np.searchsorted(steps, end),
        top * grid - high,
    )
    bases = np.where(pinned, (base - residue) // unit, -1)
    whole = Task(group, np.maximum(1, modulus // unit), bases, extent + residue, rects, unit, steps)
    return _components(whole)


def _column(values: Iterable[int]) -> Column:
    return np.fromiter(values, dtype=np.int64)


def restore(groups: Sequence[Group], bases: Mapping[int, int]) -> dict[str, int]:
    """Offsets of all buffers (bytes) from the bases of the non-empty groups (bytes, by group index).

    Groups without segments go as low as their rules allow.
    """
    offsets = {}
    for k, g in enumerate(groups):
        base = bases.get(k, g.residue if g.base is None else g.base)
        for i, at in g.members:
            offsets[i] = base + at
    return offsets


def _common_unit(lows: Column, tops: Column, pins: Column, steps: Column) -> int:
    """Largest divisor that some optimal plan keeps to; all in units of the grid.

    Every block can be pushed down until it rests on the floor or on another block, rounded up to its own step. So a
    number that divides all borders and pins, and with which each step agrees, divides all bases of a pushed-down plan.
    """
    unit = math.gcd(*(int(np.gcd.reduce(x, initial=0)) for x in (lows, tops, pins)))
    different = {int(s) for s in np.unique(steps)}
    while bad := next((s for s in different if unit % s and s % unit), 0):
        unit = math.gcd(unit, bad)
    return unit


def _components(task: Task) -> tuple[Task, ...]:
    """One task for every set of blocks connected through common steps."""
    r = task.rects
    order = np.argsort(r.start, kind="stable")
    reach = np.maximum.accumulate(r.end[order])
    cluster = np.empty(len(order), dtype=np.int64)  # of rectangles connected without a step between them
    cluster[order] = np.cumsum(np.concatenate(([False], r.start[order][1:] >= reach[:-1])))
    if not cluster.any():
        return (task,)
    part = _join(cluster[r.first], r.block, cluster)
    area = (r.high - r.low) * (r.end - r.start).astype(float)
    weight = np.bincount(part[r.block], weights=area)
    out = []
    for p in np.argsort(-weight, kind="stable"):
        if not weight[p]:
            continue
        mine = part == p
        rects = r.take(mine[r.block])
        out.append(
            Task(task.group[mine], task.step[mine], task.base[mine], task.top[mine], rects, task.unit, task.steps)
        )
    return tuple(out)


def _join(part: Column, block: Column, cluster: Column) -> Column:
    """The component of each block: its cluster, clusters joined where a block has rectangles in several."""
    import networkx as nx

    across = cluster != part[block]
    if not across.any():
        return part
    clusters = nx.utils.UnionFind(range(int(cluster.max()) + 1))
    for a, b in zip(part[block[across]].tolist(), cluster[across].tolist(), strict=True):
        clusters.union(a, b)
    root = np.array([clusters[c] for c in range(int(cluster.max()) + 1)])
    return root[part]
