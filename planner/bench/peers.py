"""Planners of other packages, on our problems: each takes whole tensors, and gives offsets and what it proves.

None of them knows alignments as we do: sizes are rounded up to the largest alignment and divided by it, offsets are
multiplied by it again. Buffers without bytes are left out, and lie at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem
from solvers.run import Options

PeerAnswer = tuple[Mapping[str, int], int | None]
"""Offsets by id, bytes; and a bound that the planner proved, bytes."""


@dataclass(frozen=True)
class Units:
    """A problem in units of its largest alignment.

    Attributes
    ----------
    unit : int
        Bytes.
    buffers : list of Buffer
        Those that have bytes.
    sizes : list of int
        Of these, in units.
    first : int
        The first step.
    """

    unit: int
    buffers: list[Buffer]
    sizes: list[int]
    first: int

    def offsets(self, problem: Problem, places: list[int]) -> dict[str, int]:
        """Bytes by id, from places in units."""
        placed = {b.id: at * self.unit for b, at in zip(self.buffers, places, strict=True)}
        return {b.id: placed.get(b.id, 0) for b in problem.buffers}

    def bound(self, peak: int) -> int | None:
        """What the smallest peak of the rounded sizes, in units, proves of the exact ones, bytes.

        On the topmost buffer less than a unit can be padding. Where an alignment is smaller than the unit, a plan need
        not keep to the grid, and nothing is proven.
        """
        if any(b.alignment != self.unit for b in self.buffers):
            return None
        tails = [b.size - (size - 1) * self.unit for b, size in zip(self.buffers, self.sizes, strict=True)]
        return (peak - 1) * self.unit + min(tails) if tails else 0


def in_units(problem: Problem) -> Units:
    """The problem in units of its largest alignment, which serves all buffers."""
    unit = max((b.alignment for b in problem.buffers), default=1)
    buffers = [b for b in problem.buffers if b.size]
    return Units(unit, buffers, [-(-b.size // unit) for b in buffers], min((b.start for b in buffers), default=0))


def supermalloc(problem: Problem, options: Options) -> PeerAnswer:
    """omnimalloc's SuperMalloc: branch and bound, several orders side by side, under the time limit.

    It gets six threads at least: with two it proved none of MiniMalloc's hard instances in 10 s, with six nine.
    """
    from omnimalloc.allocators.supermalloc import SupermallocAllocator

    units = in_units(problem)
    threads = max(options.threads, 6)
    result = SupermallocAllocator(timeout=options.time_limit, num_threads=threads).solve(_allocations(units))
    return _offsets(problem, units, result.allocations), units.bound(result.peak) if result.proved_optimal else None


def telamalloc(problem: Problem, options: Options) -> PeerAnswer:
    """omnimalloc's TelaMalloc, under the time limit."""
    from omnimalloc.allocators.telamalloc import TelamallocAllocator

    return _by_omnimalloc(problem, TelamallocAllocator(timeout=options.time_limit))


def omnimalloc_greedy(problem: Problem, options: Options) -> PeerAnswer:
    """omnimalloc's greedy orders; the best of them."""
    from omnimalloc.allocators.greedy import GreedyByAllAllocator

    return _by_omnimalloc(problem, GreedyByAllAllocator(num_threads=options.threads))


def omnimalloc_minimalloc(problem: Problem, options: Options) -> PeerAnswer:
    """Google's MiniMalloc, minimising, under the time limit rounded up to seconds."""
    from omnimalloc.allocators.minimalloc import MinimallocAllocator

    return _by_omnimalloc(problem, MinimallocAllocator(timeout=options.time_limit))


def vela(problem: Problem, options: Options) -> PeerAnswer:
    """Vela's hill climb with Vela's defaults: it ends when 500 rounds brought nothing, and knows no time limit."""
    from ethosu.vela.hillclimb_allocation import HillClimbAllocator, allocate_live_ranges

    units = in_units(problem)
    ranges = [
        _LiveRange(b.start - units.first, b.end - 1 - units.first, size)
        for b, size in zip(units.buffers, units.sizes, strict=True)
    ]
    limit = sum(units.sizes)
    return units.offsets(problem, allocate_live_ranges(ranges, HillClimbAllocator.MAX_ITERATIONS, limit)), None


@dataclass(frozen=True)
class _LiveRange:
    """What Vela reads of its live ranges: steps, both inclusive, and size."""

    start_time: int
    end_time: int
    size: int

    def get_alignment(self) -> int:
        return 1


def _allocations(units: Units) -> tuple[Any, ...]:
    from omnimalloc.primitives.allocation import Allocation

    rows = enumerate(zip(units.buffers, units.sizes, strict=True))
    return tuple(
        Allocation(id=k, size=size, start=b.start - units.first, end=b.end - units.first) for k, (b, size) in rows
    )


def _by_omnimalloc(problem: Problem, allocator: Any) -> PeerAnswer:
    units = in_units(problem)
    return _offsets(problem, units, allocator.allocate(_allocations(units))), None


def _offsets(problem: Problem, units: Units, allocations: tuple[Any, ...]) -> dict[str, int]:
    """Bytes by id, from omnimalloc's allocations in any order."""
    return units.offsets(problem, [a.offset for a in sorted(allocations, key=lambda a: a.id)])
