"""What a problem is made of: storage requests and the ties between them.

Conventions, said once: sizes, offsets, alignments and ``at`` are bytes; lifetimes are half-open ``[start, end)``
in steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LIMIT = 2**62
"""No size, offset, capacity or step may exceed this (bytes or steps): the solvers add two of them in 64 bits."""


class ProblemError(ValueError):
    """A problem that breaks a rule; the message names the thing, the value and the rule."""


class Collision(ProblemError):
    """Two writers on the same bytes: further ties may still make these one.

    Parameters
    ----------
    message : str
    one, other : (str, int)
        The writer and which of its bytes.
    """

    def __init__(self, message: str, one: tuple[str, int], other: tuple[str, int]) -> None:
        super().__init__(message)
        self.one = one
        self.other = other


class Kind(StrEnum):
    """How two buffers share storage.

    ``same``: the part's bytes *are* bytes of the whole, so both may show them while both live.
    ``handoff``: the part is born in the whole's last step and may take its place for that step only.
    """

    SAME = "same"
    HANDOFF = "handoff"


def check_int(value: object, what: str, low: int, high: int = LIMIT) -> None:
    """Raise `ProblemError` unless ``value`` is an integer in ``[low, high]``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProblemError(f"{what} is {value!r}: it must be an integer")
    if not low <= value <= high:
        bound = f"at least {low}" if value < low else f"at most {high}"
        raise ProblemError(f"{what} is {value}: it must be {bound}")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A request for storage.

    Parameters
    ----------
    id : str
        Unique in its problem.
    size : int
        Bytes, zero allowed.
    start, end : int
        Lifetime in steps, half-open; ``start < end``.
    alignment : int
        The offset is a multiple of it, bytes.
    offset : int, optional
        Pins the buffer there, bytes.
    label : str, optional
        For people; no solver reads it.

    Raises
    ------
    ProblemError
        If a value breaks one of the rules above.
    """

    id: str
    size: int
    start: int
    end: int
    alignment: int = 1
    offset: int | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        if not self._is_plain():
            self._check()

    def _is_plain(self) -> bool:
        """Nothing to complain about, in the most common form: quick, for large problems."""
        size, start, end, alignment = self.size, self.start, self.end, self.alignment
        return (
            type(self.id) is str
            and self.id != ""
            and type(size) is type(start) is type(end) is type(alignment) is int
            and 0 <= size <= LIMIT
            and -LIMIT <= start < end <= LIMIT
            and 1 <= alignment <= LIMIT
            and self.offset is None
        )

    def _check(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise ProblemError(f"buffer id is {self.id!r}: it must be a non-empty string")
        name = f"buffer {self.id!r}: "
        check_int(self.size, name + "size", 0)
        check_int(self.start, name + "start", -LIMIT)
        check_int(self.end, name + "end", -LIMIT)
        if self.end <= self.start:
            raise ProblemError(f"{name}end is {self.end}: it must be after start, {self.start} (half-open lifetime)")
        check_int(self.alignment, name + "alignment", 1)
        if self.offset is not None:
            check_int(self.offset, name + "offset", 0)
            check_int(self.offset + self.size, name + "offset plus size", 0)
            if self.offset % self.alignment:
                raise ProblemError(
                    f"{name}offset is {self.offset}: it must be a multiple of the alignment, {self.alignment}"
                )

    @property
    def duration(self) -> int:
        """Steps that the buffer lives."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Colocation:
    """``offset(part) == offset(whole) + at``.

    Parameters
    ----------
    part, whole : str
        Buffer ids. For a hand-off, ``whole`` is the predecessor and ``part`` the successor.
    at : int
        Bytes from the whole's offset to the part's.
    kind : Kind
    required : bool
        An optional colocation may be left out by a solver.
    saves : int, optional
        Bytes of copying that an active colocation avoids; the part's size where not given.

    Raises
    ------
    ProblemError
        If a value breaks a rule.
    """

    part: str
    whole: str
    at: int
    kind: Kind = Kind.SAME
    required: bool = True
    saves: int | None = None

    def __post_init__(self) -> None:
        name = f"colocation of {self.part!r} in {self.whole!r}: "
        for i in (self.part, self.whole):
            if not isinstance(i, str):
                raise ProblemError(f"{name}{i!r} is no buffer id: it must be a string")
        check_int(self.at, name + "at", 0)
        if self.part == self.whole:
            raise ProblemError(f"{name}a buffer cannot be part of itself")
        if not isinstance(self.kind, Kind):
            raise ProblemError(f"{name}kind is {self.kind!r}: it must be one of {', '.join(Kind)}")
        if not isinstance(self.required, bool):
            raise ProblemError(f"{name}required is {self.required!r}: it must be true or false")
        if self.saves is not None:
            check_int(self.saves, name + "saves", 0)

    def check_between(self, part: Buffer, whole: Buffer) -> None:
        """Raise `ProblemError` unless the two buffers can be tied so at all."""
        name = f"colocation of {self.part!r} in {self.whole!r}: "
        if self.at + part.size > whole.size:
            raise ProblemError(
                f"{name}at {self.at} plus the part's size {part.size} is {self.at + part.size}: "
                f"it must fit inside the whole's size, {whole.size}"
            )
        lives = f"[{part.start}, {part.end}) and [{whole.start}, {whole.end})"
        if self.kind is Kind.SAME and (part.end < whole.start or whole.end < part.start):
            raise ProblemError(f"{name}the lifetimes {lives} must overlap or touch")
        if self.kind is Kind.HANDOFF and not whole.start < part.start == whole.end - 1:
            raise ProblemError(
                f"{name}the lifetimes are {lives}: a successor must be born in the last step of the whole, and after it"
            )
