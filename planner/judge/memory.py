"""What every byte holds while a program is replayed: interval maps, one per arena or storage."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class ReplayError(Exception):
    """A program that does not compute what it did before; the message names the op, the two values, the bytes."""


class UnjudgedError(ReplayError):
    """An op that the judge cannot handle: no plan of its program can be judged. The message names the op."""


@contextlib.contextmanager
def judging(op: str) -> Iterator[None]:
    """Whatever goes wrong while an op is looked at is the judge's refusal.

    Parameters
    ----------
    op : str
        Its name.

    Raises
    ------
    UnjudgedError
        For every exception but a `ReplayError`.
    """
    try:
        yield
    except ReplayError:
        raise
    except Exception as error:
        raise UnjudgedError(f"op {op!r} cannot be judged: {type(error).__name__}: {error}") from error


Place = tuple[int, int]  # arena and offset, bytes


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor as an operand.

    Attributes
    ----------
    name : str
    storage : hashable
        Which memory it is in the program before rewriting; views share it.
    nbytes : int
    places : tuple of (arena, offset) or None
        Where it lies in the plan. Empty or None: not planned, memory of its own. Several: the result of control flow,
        left there by the first branch, the second, ...
    """

    name: str
    storage: Hashable
    nbytes: int
    places: tuple[Place | None, ...] = ()


class Piece(NamedTuple):
    """Bytes ``[low, high)`` that hold bytes of ``value`` from ``at`` on. ``value`` None: anything."""

    low: int
    high: int
    value: str | None
    at: int


class Memory:
    """Interval maps: one per arena, and one per storage that no arena holds.

    Parameters
    ----------
    branch : int or None
        The branch that control flow takes. None: every storage is in memory of its own.
    """

    def __init__(self, branch: int | None = None) -> None:
        self.branch = branch
        self.maps: dict[Hashable, list[Piece]] = {}

    def write(self, ref: Ref, content: Iterable[Piece]) -> None:
        """Put ``content`` (relative to the tensor) where ``ref`` lies."""
        key, at = self._spot(ref)
        if ref.nbytes:
            self._store(key, at, at + ref.nbytes, [p._replace(low=p.low + at, high=p.high + at) for p in content])

    def read(self, ref: Ref) -> list[Piece]:
        """What ``ref`` holds, relative to the tensor."""
        key, at = self._spot(ref)
        return self._load(key, at, at + ref.nbytes)

    def check(self, ref: Ref, content: list[Piece], when: str) -> None:
        """Raise `ReplayError` unless ``ref`` holds ``content``."""
        key, at = self._spot(ref)
        found = self._load(key, at, at + ref.nbytes)
        if found == content or not ref.nbytes:
            return
        for want in content:
            if want.value is None:
                continue
            for have in found:
                low, high = max(want.low, have.low), min(want.high, have.high)
                if low < high and (have.value, have.at - have.low) != (want.value, want.at - want.low):
                    raise ReplayError(
                        f"{when}: {ref.name!r} must hold {want.value!r} in bytes [{low}, {high}), "
                        f"but finds {have.value or 'nothing'!r} at {at + low} of {_memory_name(key)}"
                    )

    def _spot(self, ref: Ref) -> tuple[Hashable, int]:
        place = ref.places[min(self.branch, len(ref.places) - 1)] if ref.places and self.branch is not None else None
        return ("storage", ref.storage) if place is None else ("arena", place[0]), 0 if place is None else place[1]

    def _store(self, key: Hashable, low: int, high: int, pieces: list[Piece]) -> None:
        held = self.maps.setdefault(key, [])
        first, last = self._range(held, low, high)
        inside = held[first:last]
        kept = []
        if inside and inside[0].low < low:
            kept.append(inside[0]._replace(high=low))
        kept += pieces
        if inside and inside[-1].high > high:
            p = inside[-1]
            kept.append(Piece(high, p.high, p.value, p.at + high - p.low))
        held[first:last] = kept

    def _load(self, key: Hashable, low: int, high: int) -> list[Piece]:
        held = self.maps.get(key, [])
        first, last = self._range(held, low, high)
        out, at = [], low
        for p in held[first:last]:
            lo, hi = max(p.low, low), min(p.high, high)
            if lo > at:
                out.append(Piece(at - low, lo - low, None, 0))
            out.append(Piece(lo - low, hi - low, p.value, p.at + lo - p.low))
            at = hi
        if at < high:
            out.append(Piece(at - low, high - low, None, 0))
        return joined(out)

    @staticmethod
    def _range(held: list[Piece], low: int, high: int) -> tuple[int, int]:
        """Indices of the pieces that touch ``[low, high)``."""
        first = bisect_right(held, low, key=lambda p: p.high)
        last = first
        while last < len(held) and held[last].low < high:
            last += 1
        return first, last


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours that continue each other become one."""
    out: list[Piece] = []
    for p in pieces:
        if p.low >= p.high:
            continue
        if out and _continues(out[-1], p):
            out[-1] = out[-1]._replace(high=p.high)
        else:
            out.append(p)
    return out


def _continues(p: Piece, q: Piece) -> bool:
    return p.high == q.low and p.value == q.value and (p.value is None or p.at + p.high - p.low == q.at)


def _memory_name(key: Hashable) -> str:
    kind, which = key if isinstance(key, tuple) else ("memory", key)
    return f"arena {which}" if kind == "arena" else "its own memory"
