"""The judge of a plan with banks: each bank on its own, by `solvers.verifier`. It shares no code with the players."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from solvers.banks.bank import Bank
from solvers.problem.buffers import ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.verifier import VerificationError, verify


def verify_banks(
    problem: Problem, banks: Sequence[Bank], bank_of: Mapping[str, int], solution: Solution
) -> tuple[int, ...]:
    """Judge a plan.

    Parameters
    ----------
    problem : Problem
    banks : sequence of Bank
    bank_of : dict of str to int
        By buffer, the index of its bank.
    solution : Solution
        Offsets from the bottom of each buffer's bank.

    Returns
    -------
    tuple of int
        The peak in each bank, bytes.

    Raises
    ------
    VerificationError
        Listing what is wrong, up to a hundred violations of the first bank that has any.
    """
    peaks = []
    for bank, (part, placed) in zip(banks, parts_of(problem, banks, bank_of, solution), strict=True):
        try:
            buffers = [
                replace(b, alignment=math.lcm(b.alignment, bank.alignment or 1), offset=None) for b in part.buffers
            ]
            peaks.append(verify(Problem(buffers, part.colocations, bank.size), placed))
        except ProblemError as error:
            raise VerificationError([f"bank {bank.name!r}: {error}"]) from None
        except VerificationError as error:
            raise VerificationError([f"bank {bank.name!r}: {v}" for v in error.violations]) from None
    return tuple(peaks)


def parts_of(
    problem: Problem, banks: Sequence[Bank], bank_of: Mapping[str, int], solution: Solution
) -> list[tuple[Problem, Solution]]:
    """What is in each bank: its part of the problem, with optional colocations only, and where the plan has it.

    Raises
    ------
    VerificationError
        If a buffer is in no bank, off its pin, or apart from what it is tied to. Parameters are as in `verify_banks`.
    """
    _check_places(problem, banks, bank_of, solution)
    on = set(solution.active)
    out = []
    for n in range(len(banks)):
        here = {b.id for b in problem.buffers if bank_of[b.id] == n}
        ties = [k for k, c in enumerate(problem.colocations) if c.part in here and c.whole in here]
        colocations = [replace(problem.colocations[k], required=False) for k in ties]
        part = Problem([b for b in problem.buffers if b.id in here], colocations)
        offsets = {i: at for i, at in solution.offsets.items() if i in here}
        out.append((part, Solution(offsets, tuple(new for new, k in enumerate(ties) if k in on))))
    return out


def _check_places(problem: Problem, banks: Sequence[Bank], bank_of: Mapping[str, int], solution: Solution) -> None:
    """Every buffer in a bank, at its pin, and with all that it is tied to."""
    wrong = []
    known = {b.id for b in problem.buffers}
    for named in (solution.offsets, bank_of):
        wrong += [f"the plan places {i!r}, which is no buffer of the problem" for i in sorted(named.keys() - known)]
    for b in problem.buffers:
        n = bank_of.get(b.id)
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < len(banks):
            wrong.append(f"buffer {b.id!r} has bank {n!r}: the plan has {len(banks)} banks")
        elif b.offset is not None and solution.offsets.get(b.id) != b.offset:
            wrong.append(f"buffer {b.id!r} is at {solution.offsets.get(b.id)}: it is pinned at {b.offset}")
    on = set(solution.active)
    for k in solution.active:
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(problem.colocations):
            wrong.append(f"active colocation {k!r} does not exist: the problem has {len(problem.colocations)}")
    for k, c in enumerate(problem.colocations):
        if c.required and k not in on:
            wrong.append(f"colocation {k} of {c.part!r} in {c.whole!r} is required but not active")
        if k in on and bank_of.get(c.part) != bank_of.get(c.whole):
            wrong.append(f"colocation {k}: {c.part!r} and {c.whole!r} are in different banks")
    if wrong:
        raise VerificationError(wrong[:100])
