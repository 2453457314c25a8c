"""Which kinds of sharing of a problem a planner may use."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from solvers.problem.buffers import Colocation, Kind
from solvers.problem.problem import Problem


class ShareKind(StrEnum):
    """A kind of optional colocation, told by the buffers' lifetimes."""

    CONCATS = "concats"
    """The part is born before the whole: it is written where the whole will be."""
    VIEWS = "views"
    """The part is not born before the whole: it shows bytes of it."""
    IN_PLACE = "in-place"
    """A hand-off."""


def kind_of(problem: Problem, tie: Colocation) -> ShareKind:
    """The kind of a colocation of a problem."""
    if tie.kind is Kind.HANDOFF:
        return ShareKind.IN_PLACE
    part, whole = problem.by_id[tie.part], problem.by_id[tie.whole]
    return ShareKind.CONCATS if part.start < whole.start else ShareKind.VIEWS


def only(problem: Problem, kinds: Collection[ShareKind]) -> Problem:
    """The problem without a capacity, with all required colocations, and of the optional ones with these kinds."""
    kept = [c for c in problem.colocations if c.required or kind_of(problem, c) in kinds]
    return Problem(problem.buffers, kept, name=problem.name)
