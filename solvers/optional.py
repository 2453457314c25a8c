"""Which optional colocations to switch on together: as many as do not contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from solvers.buffers import ProblemError
from solvers.groups import build_groups
from solvers.problem import Problem


def optional_of(problem: Problem) -> list[int]:
    """Indices of the optional colocations, those that save most copying first."""
    return sorted(set(range(len(problem.colocations))) - set(problem.required), key=lambda k: -_saves(problem, k))


WORK_LIMIT = 100_000
"""Colocations looked at in all trials together; a second or two."""


def most_sharing(problem: Problem) -> tuple[int, ...]:
    """The required colocations and as many optional ones as go together, those that save most first.

    Whole batches are tried before halves, so that a few contradictions among many cost few trials. Beyond
    `WORK_LIMIT` the rest stays off: work and not time, so that greedy's plan is the same whatever the time limit.
    """
    active = list(problem.required)
    batches, work = [optional_of(problem)], 0
    while batches and work < WORK_LIMIT:
        batch = batches.pop()
        work += len(active) + len(batch)
        if _consistent(problem, [*active, *batch]):
            active += batch
        elif len(batch) > 1:
            batches += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
    return tuple(sorted(active))


def _consistent(problem: Problem, active: Sequence[int]) -> bool:
    ties = [problem.colocations[k] for k in sorted(active)]
    tied = dict.fromkeys(i for c in ties for i in (c.part, c.whole))
    try:
        build_groups([problem.by_id[i] for i in tied], ties)
    except ProblemError:
        return False
    return True


def _saves(problem: Problem, k: int) -> int:
    c = problem.colocations[k]
    return problem.by_id[c.part].size if c.saves is None else c.saves
