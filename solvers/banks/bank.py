"""Memory in banks of different speed: what is given, and what comes out.

Banks are listed in the order of preference, the fastest first; offsets count from the bottom of a bank. The objective
is lexicographic: as much weight as can be in the first bank, then in the second, and so on. Banks differ in speed by
factors that nobody states, so a sum would need numbers that nobody has; and the order of preference is all that
ExecuTorch's ``TargetMemoryMap`` declares as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from solvers.problem.buffers import LIMIT, Buffer, ProblemError, check_int
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution, Status


@dataclass(frozen=True, slots=True)
class Bank:
    """A memory that buffers may be placed in. The fields are those of ExecuTorch's ``Bank``.

    Parameters
    ----------
    name : str
    size : int
        Bytes that the plan may use.
    mem_id : int
        The number of the arena in the program, at least 1.
    alignment : int, optional
        Every buffer in the bank lies at a multiple of it, besides its own; bytes.

    Raises
    ------
    ProblemError
        If a value breaks one of these rules.
    """

    name: str
    size: int
    mem_id: int
    alignment: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ProblemError(f"bank name is {self.name!r}: it must be a non-empty string")
        check_int(self.size, f"bank {self.name!r}: size", 0)
        check_int(self.mem_id, f"bank {self.name!r}: mem_id", 1)
        if self.alignment is not None:
            check_int(self.alignment, f"bank {self.name!r}: alignment", 1)


def check_banks(banks: Sequence[Bank]) -> None:
    """Raise `ProblemError` unless there are banks, with different names and mem_ids."""
    if not banks:
        raise ProblemError("there are no banks: at least one is needed")
    for n, bank in enumerate(banks):
        for other in banks[:n]:
            if bank.name == other.name or bank.mem_id == other.mem_id:
                raise ProblemError(
                    f"banks {other.name!r} (mem_id {other.mem_id}) and {bank.name!r} (mem_id {bank.mem_id}): "
                    f"names and mem_ids must differ"
                )
    if (total := sum(b.size for b in banks)) > LIMIT:
        raise ProblemError(f"the sizes of the banks add up to {total}: it must be at most {LIMIT}")


@dataclass(frozen=True)
class Excess:
    """Why the banks do not hold the buffers.

    Attributes
    ----------
    banks : tuple of str
        The names of those that are too small, all together.
    required, available : int
        Bytes.
    step : int or None
        Where that much is needed; None if a single buffer is too large.
    parts : tuple of (str, int)
        The buffers that live there, and their bytes, the largest first: those to blame.
    proven : bool
        No plan needs less; otherwise it is what the best plan found needs.
    """

    banks: tuple[str, ...]
    required: int
    available: int
    step: int | None
    parts: tuple[tuple[str, int], ...]
    proven: bool = True

    @property
    def excess(self) -> int:
        """Bytes."""
        return self.required - self.available

    def __str__(self) -> str:
        names = " and ".join(repr(n) for n in self.banks)
        what = f"bank {names}" if len(self.banks) == 1 else f"banks {names} together"
        known = "" if self.proven else " (the best plan found)"
        some = ", ".join(f"{i!r} {size}" for i, size in self.parts[:5])
        more = f", {len(self.parts) - 5} more" if len(self.parts) > 5 else ""
        who = f"buffer {some}" if self.step is None else f"in step {self.step} live {some}{more}"
        return (
            f"capacity exceeded: required {self.required} bytes{known}, available {self.available} in {what}, "
            f"excess {self.excess}; {who}"
        )


@dataclass(frozen=True)
class BankResult:
    """The outcome of one solve with banks.

    Attributes
    ----------
    status : Status
        ``optimal``: the assignment is proven best, and the peak of each bank smallest for what is in it.
    banks : tuple of Bank
    bank_of : dict of str to int
        By buffer, the index of its bank; empty without a plan.
    solution : Solution or None
        Offsets from the bottom of each bank. Verified; None if infeasible or unknown.
    problems, results : tuple of Problem, Result
        By bank: what is in it, as one problem with its capacity, and the outcome of that.
    weights : tuple of int
        By bank, the weight in it.
    bounds : tuple of int
        By bank, a proven ceiling: no assignment's weights are larger, compared as tuples.
    excess : Excess or None
        Without a plan, what is missing.
    wall_time : float
        Seconds.
    struck : bool
        The time limit, or a stop, ended the search.
    """

    status: Status
    banks: tuple[Bank, ...]
    bank_of: Mapping[str, int]
    solution: Solution | None
    problems: tuple[Problem, ...]
    results: tuple[Result, ...]
    weights: tuple[int, ...]
    bounds: tuple[int, ...]
    excess: Excess | None
    wall_time: float
    struck: bool = False

    @property
    def best_assignment(self) -> bool:
        """Is it proven that no assignment has more weight in faster banks?"""
        return self.solution is not None and self.weights >= self.bounds


def aligned(buffer: Buffer, bank: Bank) -> Buffer:
    """The buffer as it must be placed in a bank. Raises `ProblemError` where its pinned offset forbids that."""
    if bank.alignment is None or buffer.alignment % bank.alignment == 0:
        return buffer
    return replace(buffer, alignment=math.lcm(buffer.alignment, bank.alignment))
