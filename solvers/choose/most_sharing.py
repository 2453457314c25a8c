"""Which optional colocations to switch on together: as many as do not contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from solvers.choose.load_model import Choices, saves
from solvers.problem.buffers import ProblemError
from solvers.problem.groups import build_groups

T = TypeVar("T")

WORK_LIMIT = 100_000
"""Colocations looked at in all trials together; a second or two."""


def accept_in_batches(
    items: Sequence[T], check: Callable[[list[T]], None], work_limit: int = WORK_LIMIT
) -> tuple[list[T], list[tuple[T, str]]]:
    """Accept items as long as they go together with those before them.

    Whole batches are tried before halves, so that a few contradictions among many cost few trials.

    Parameters
    ----------
    items : sequence
        The most wanted first.
    check : callable
        Raises `ProblemError` if the items it is given do not go together.
    work_limit : int
        When this many items were looked at in all trials together, the rest is refused.

    Returns
    -------
    accepted : list
    refused : list of (item, reason)
    """
    accepted: list[T] = []
    refused: list[tuple[T, str]] = []
    batches, work = [list(items)], 0
    while batches:
        batch = batches.pop()
        work += len(accepted) + len(batch)
        if work > work_limit:
            refused += [(item, f"not looked at: more than {work_limit} trials") for item in batch]
            continue
        try:
            check([*accepted, *batch])
        except ProblemError as error:
            if len(batch) == 1:
                refused.append((batch[0], str(error)))
            else:
                batches += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
        else:
            accepted += batch
    return accepted, refused


def most_sharing(choices: Choices) -> tuple[int, ...]:
    """The required colocations and as many optional ones as go together, those that save most first.

    Limited by work and not by time, so that greedy's plan is the same whatever the time limit.
    """
    problem = choices.problem

    def check(optional: list[int]) -> None:
        ties = [problem.colocations[k] for k in sorted([*problem.required, *optional])]
        tied = dict.fromkeys(i for c in ties for i in (c.part, c.whole))
        build_groups([problem.by_id[i] for i in tied], ties)

    optional = set(range(len(problem.colocations))) - choices.required
    wanted = choices.compatible(sorted(optional, key=lambda k: (-saves(problem, k), k)))
    accepted, _ = accept_in_batches(wanted, check)
    return tuple(sorted([*problem.required, *accepted]))
