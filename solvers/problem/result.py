"""What comes out: a plan, what is proven about it, and how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """CP-SAT's words. ``optimal``: the peak is proven smallest; with another objective than ``peak``, all that it asks
    for is proven. ``feasible``: a plan, not proven so.
    ``infeasible``: proven that no plan exists (within the capacity). ``unknown``: no plan found, none excluded."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Solution:
    """A plan: an offset in bytes for every buffer id, and the indices of the active colocations."""

    offsets: Mapping[str, int]
    active: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of the trace: seconds since the start, best peak and bound so far (bytes), and who found it."""

    time: float
    peak: int | None
    lower_bound: int
    engine: str


@dataclass(frozen=True)
class Certificate:
    """Why no plan is smaller: the buffers that live in ``step`` need ``parts``, bytes each, which add up to ``total``.

    ``step`` is None where a single buffer must end that high.
    """

    step: int | None
    parts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(size for _, size in self.parts)


@dataclass(frozen=True)
class Result:
    """The outcome of one solve.

    Attributes
    ----------
    status : Status
    solution : Solution or None
        Verified; None if infeasible or unknown.
    peak : int or None
        Bytes; of the solution. Without a solution, the smallest peak seen when the capacity is ignored.
    lower_bound : int
        Bytes; proven for every choice of optional colocations.
    solver : str
        The engine whose plan or proof this is.
    wall_time : float
        Seconds.
    copies_optimal : bool
        True if no plan at this peak saves more copying.
    trace : tuple of Progress
        Every better plan or bound.
    proof : str
        Who proved the bound: ``load``, a sum that anyone can check, or an engine that found no plan below it.
    certificate : Certificate or None
        The sum, if the bound is one.
    struck : bool
        The time limit, or a stop, ended the search: another run may find another plan.
    """

    status: Status
    solution: Solution | None
    peak: int | None
    lower_bound: int
    solver: str
    wall_time: float
    copies_optimal: bool = True
    trace: tuple[Progress, ...] = field(default=(), repr=False)
    proof: str = "load"
    certificate: Certificate | None = field(default=None, repr=False)
    struck: bool = False

    @property
    def gap(self) -> float | None:
        """``(peak - lower_bound) / peak``; 0 for an empty arena, None without a solution."""
        if self.solution is None or self.peak is None:
            return None
        return (self.peak - self.lower_bound) / self.peak if self.peak else 0.0
