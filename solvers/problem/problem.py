"""The problem: buffers, colocations, perhaps a capacity; frozen, and valid once it exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from solvers.problem.buffers import LIMIT, Buffer, Colocation, ProblemError, check_int
from solvers.problem.groups import Group, build_groups


@dataclass(frozen=True)
class Problem:
    """Place the buffers in one arena so that buffers that live together do not overlap, and the peak is smallest.

    Parameters
    ----------
    buffers : sequence of Buffer
    colocations : sequence of Colocation
    capacity : int, optional
        No plan may have a larger peak, bytes.
    name : str
        For people.

    Raises
    ------
    ProblemError
        If ids repeat, a colocation names an unknown buffer or does not fit, or required colocations contradict
        each other; the message names the thing, the value and the rule.
    """

    buffers: tuple[Buffer, ...]
    colocations: tuple[Colocation, ...] = ()
    capacity: int | None = None
    name: str = ""
    required: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        buffers: Iterable[Buffer],
        colocations: Iterable[Colocation] = (),
        capacity: int | None = None,
        name: str = "",
    ) -> None:
        object.__setattr__(self, "buffers", tuple(buffers))
        object.__setattr__(self, "colocations", tuple(colocations))
        object.__setattr__(self, "capacity", capacity)
        object.__setattr__(self, "name", name)
        required = tuple(k for k, c in enumerate(self.colocations) if c.required)
        object.__setattr__(self, "required", required)
        self._check()

    def _check(self) -> None:
        if self.capacity is not None:
            check_int(self.capacity, "capacity", 0)
        seen = self.by_id
        if len(seen) != len(self.buffers):
            ids: set[str] = set()
            for b in self.buffers:
                if b.id in ids:
                    raise ProblemError(f"buffer id {b.id!r} occurs twice: ids must be unique")
                ids.add(b.id)
        total = sum(b.size + b.alignment for b in self.buffers)
        if total > LIMIT:
            raise ProblemError(f"the sizes and alignments of the buffers add up to {total}: it must be at most {LIMIT}")
        for c in self.colocations:
            for end, i in (("part", c.part), ("whole", c.whole)):
                if i not in seen:
                    raise ProblemError(
                        f"colocation of {c.part!r} in {c.whole!r}: the {end} {i!r} is no buffer of the problem"
                    )
            c.check_between(seen[c.part], seen[c.whole])
        self.groups(self.required)

    @cached_property
    def by_id(self) -> dict[str, Buffer]:
        """The buffers by id."""
        return {b.id: b for b in self.buffers}

    def groups(self, active: Sequence[int]) -> tuple[Group, ...]:
        """The rigid groups under the given active colocations (indices).

        Raises
        ------
        ProblemError
            If these contradict each other.
        """
        key = tuple(active)
        if key not in self._groups:
            self._groups[key] = build_groups(self.buffers, [self.colocations[k] for k in key])
        return self._groups[key]

    @cached_property
    def _groups(self) -> dict[tuple[int, ...], tuple[Group, ...]]:
        return {}
