"""Exact reductions: from groups to the smallest equivalent integer problem, and back.

- Empty buffers drop out (they get a legal offset on the way back).
- Addresses are divided by their common unit. Segments may be rounded up to it where alignments force every base onto
  a grid; the peak is always measured with the true top of each group.
- Only the steps at which something starts are kept.
- Blocks that share no step, directly or through others, are solved apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from solvers.groups import Group


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

    @property
    def size(self) -> int:
        """Units from the base to the topmost rectangle's end."""
        return max(r.high for r in self.rects)

    @property
    def area(self) -> int:
        """Units times steps."""
        return sum((r.high - r.low) * (r.end - r.start) for r in self.rects)


@dataclass(frozen=True)
class Task:
    """Blocks that must be placed together. ``unit`` is bytes per unit; ``steps`` maps compressed steps back."""

    blocks: tuple[Block, ...]
    unit: int
    steps: tuple[int, ...]

    def peak(self, bases: Sequence[int]) -> int:
        """Peak of a placement (bases in units), bytes."""
        return max((x * self.unit + b.top for b, x in zip(self.blocks, bases, strict=True)), default=0)

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
    real = [(k, g) for k, g in enumerate(groups) if g.segments]
    if not real:
        return ()
    grid = math.gcd(*(x for _, g in real for x in (g.modulus, *(s.low + g.residue for s in g.segments))))
    common = _common_unit([g for _, g in real], grid)
    unit = grid * common
    times = sorted({s.start for _, g in real for s in g.segments})
    blocks = [_block(k, g, grid, common, times) for k, g in real]
    return tuple(
        Task(tuple(part), unit, tuple(times)) for part in sorted(_components(blocks), key=lambda p: -_weight(p))
    )


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


def _common_unit(groups: Sequence[Group], grid: int) -> int:
    """Largest divisor (in ``grid`` units) that some optimal plan keeps to.

    Every block can be pushed down until it rests on the floor or on another block, rounded up to its own step. So a
    number that divides all borders and pins, and with which each step agrees, divides all bases of a pushed-down plan.
    """
    unit = 0
    for g in groups:
        for s in g.segments:
            unit = math.gcd(unit, (s.low + g.residue) // grid, -(-(s.high + g.residue) // grid))
        if g.base is not None:
            unit = math.gcd(unit, (g.base - g.residue) // grid)
    steps = {g.modulus // grid for g in groups}
    while bad := next((s for s in steps if unit % s and s % unit), 0):
        unit = math.gcd(unit, bad)
    return unit


def _block(k: int, g: Group, grid: int, common: int, times: Sequence[int]) -> Block:
    unit = grid * common
    rects = []
    for s in g.segments:
        low, high = s.low + g.residue, s.high + g.residue
        top = -(-high // grid) * grid
        rects.append(Rect(low // unit, top // unit, bisect_left(times, s.start), bisect_left(times, s.end), top - high))
    base = None if g.base is None else (g.base - g.residue) // unit
    return Block(k, tuple(rects), max(1, g.modulus // unit), base, g.extent + g.residue)


def _components(blocks: Sequence[Block]) -> Iterable[list[Block]]:
    """Sets of blocks connected through common steps."""
    import networkx as nx

    spans = sorted((r.start, r.end, k) for k, b in enumerate(blocks) for r in b.rects)
    parts = nx.utils.UnionFind(range(len(blocks)))
    reach, holder = -math.inf, spans[0][2]
    for start, end, k in spans:
        if start < reach:
            parts.union(holder, k)
        if end > reach:
            reach, holder = end, k
    out: dict[int, list[Block]] = {}
    for k, b in enumerate(blocks):
        out.setdefault(parts[k], []).append(b)
    return out.values()


def _weight(blocks: Sequence[Block]) -> int:
    return sum(b.area for b in blocks)
