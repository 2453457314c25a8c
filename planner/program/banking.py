"""A program's tensors into banks: which tensors must be where, how much each weighs, and which ties are tried.

A dataflow's arena 0 holds the tensors that may be in any bank; those of every other arena are pinned to the bank with
that mem_id. Arenas that are no bank's are planned as ever. The ties are those of the plan without banks; where that
plan's groups are too large for the fast bank, fewer (`solvers.banks.solve`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from planner.program.dataflow import Dataflow
from solvers.banks.bank import Bank, BankResult
from solvers.banks.solve import solve_banks
from solvers.deadline import Deadline
from solvers.problem.buffers import Colocation
from solvers.problem.problem import Problem
from solvers.run import Options

ANYWHERE = 0
"""The arena of tensors that may be in any bank; mem_id 0 is that of constants."""

Problems = Callable[[Collection[Colocation], bool], Mapping[int, Problem]]
"""By arena, the problem with these ties: optional, or (second argument) required."""


def weights_of(flow: Dataflow) -> dict[str, int]:
    """Bytes that a tensor's ops move: its size times the number of ops that read or write it."""
    uses: dict[str, int] = {}
    for op in flow.ops:
        for i in {flow.root(i).id for i in (*op.reads, *op.writes, *op.mutates)}:
            uses[i] = uses.get(i, 0) + 1
    return {t.id: t.size * uses.get(t.id, 0) for t in flow.tensors}


def in_banks(arena: int, banks: Sequence[Bank]) -> bool:
    """Is this an arena whose tensors are put into banks?"""
    return arena == ANYWHERE or any(arena == b.mem_id for b in banks)


def solve_in_banks(
    flow: Dataflow,
    banks: Sequence[Bank],
    problems: Problems,
    ties: Collection[Colocation],
    active: Collection[Colocation],
    options: Options,
    deadline: Deadline,
) -> tuple[BankResult, frozenset[Colocation]]:
    """Put a program's tensors into banks.

    Parameters
    ----------
    flow : Dataflow
    banks : sequence of Bank
        The fastest first.
    problems : callable
        Makes the problems of a choice of ties.
    ties, active : collection of Colocation
        All that may be active, and those of the best plan without banks.
    options : Options
    deadline : Deadline

    Returns
    -------
    BankResult
    frozenset of Colocation
        The ties that are active in it.
    """

    def merged(some: Collection[Colocation], required: bool) -> Problem:
        mine = [p for arena, p in problems(some, required).items() if in_banks(arena, banks)]
        return Problem([b for p in mine for b in p.buffers], [c for p in mine for c in p.colocations])

    every = merged(ties, False)
    bank_of = {b.mem_id: n for n, b in enumerate(banks)}
    pins = {b.id: bank_of[arena] for arena, p in problems(ties, False).items() if arena in bank_of for b in p.buffers}
    on = [k for k, c in enumerate(every.colocations) if c.required or c in active]
    weights = weights_of(flow)
    result = solve_banks(
        every,
        banks,
        pins,
        {b.id: weights[b.id] for b in every.buffers},
        options=replace(options, time_limit=deadline.left, progress=None),
        clock=deadline.clock,
        active=on,
        make=lambda chosen: merged([replace(every.colocations[k], required=False) for k in chosen], True),
    )
    chosen = result.solution.active if result.solution else ()
    return result, frozenset(replace(every.colocations[k], required=False) for k in chosen)
