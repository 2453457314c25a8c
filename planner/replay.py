"""The second judge: it runs the rewritten program symbolically on byte ranges.

The program *before* rewriting is run with every storage in private memory; this says which bytes each read must see.
Then the rewritten program is run at its planned addresses, and each read must see just these bytes. Inputs are
written in any order before step 0; every op may write its outputs, in any order, before it reads, but for an
elementwise op's read that lies exactly where the result goes. Ops that only copy bytes may come, go and move: they copy
what they find. Outputs and state must hold at the end. Near-linear: memory is an interval map.

It knows nothing of dataflows, lifetimes or sharing: the front end takes its `Trace` straight from the program.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ReplayError(Exception):
    """A program that does not compute what it did before; the message names the op, the two values, the bytes."""


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


class Move(NamedTuple):
    """Bytes ``[source, source + nbytes)`` of a read go to ``[target, target + nbytes)`` of a write."""

    read: int
    source: int
    write: int
    target: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction.

    Attributes
    ----------
    name : str
        The same before and after rewriting.
    reads, writes, mutates : tuple of Ref
        ``writes`` are filled in full and may be written before anything is read; ``mutates`` are read, then written.
    moved : tuple of Move, optional
        What the op copies, if that is all that it does; else None.
    elementwise : tuple of int
        Reads of which every element is used for the result's element at the same place only, so that the one write
        may lie exactly on one of them.
    scratch : tuple of (arena, low, high)
        Bytes that it may overwrite besides.
    """

    name: str
    reads: tuple[Ref, ...]
    writes: tuple[Ref, ...]
    mutates: tuple[Ref, ...] = ()
    moved: tuple[Move, ...] | None = None
    elementwise: tuple[int, ...] = ()
    scratch: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Trace:
    """A program: what is there before it runs, its instructions, what must be there afterwards."""

    inputs: tuple[Ref, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Ref, ...]
    state: tuple[Ref, ...] = ()


class Piece(NamedTuple):
    """Bytes ``[low, high)`` that hold bytes of ``value`` from ``at`` on. ``value`` None: anything."""

    low: int
    high: int
    value: str | None
    at: int


def replay(before: Trace, after: Trace) -> None:
    """Judge a rewritten and planned program.

    Parameters
    ----------
    before : Trace
        The program as it was; its places are not looked at.
    after : Trace
        The program as it will run.

    Raises
    ------
    ReplayError
        At the first read that would not see what it saw before.
    """
    expected = _expect(before)
    refs = (r for step in after.steps for r in step.writes)
    for branch in range(max((len(r.places) for r in refs), default=1) or 1):
        _replay(before, after, expected, Memory(branch))


def _replay(before: Trace, after: Trace, expected: Mapping[str, _Expected], memory: Memory) -> None:
    """One way through the program, in which every control-flow op takes the same branch.

    These ways are enough: whatever branch runs, the op may overwrite what any of them may, so that only where a
    result lies depends on the branch.
    """
    for ref in after.inputs:
        memory.write(ref, [Piece(0, ref.nbytes, ref.name, 0)])
    for ref in after.inputs:
        memory.check(ref, [Piece(0, ref.nbytes, ref.name, 0)], "the start of the run")
    order = iter([s.name for s in before.steps if s.moved is None])
    for step in after.steps:
        if step.moved is not None:
            _copy(memory, step, expected.get(step.name))
        else:
            _check_order(step.name, expected, order)
            _run(memory, step, expected[step.name])
    if (missing := next(order, None)) is not None:
        raise ReplayError(f"op {missing!r} is missing, and it does more than copy bytes")
    ends = expected[""]
    for ref, content in zip((*after.outputs, *after.state), ends.reads, strict=True):
        memory.check(ref, content, "the end of the run")


def _check_order(name: str, expected: Mapping[str, _Expected], order: Iterator[str]) -> None:
    """What does more than copy bytes stays, once and in its order."""
    if name not in expected:
        raise ReplayError(f"op {name!r} was not in the program")
    wanted = next(order, None)
    if wanted != name:
        raise ReplayError(f"op {name!r} is out of order or takes the place of {wanted!r}, which is missing")


@dataclass(frozen=True)
class _Expected:
    """What an op's operands hold: read before it, written and mutated after it."""

    reads: Sequence[list[Piece]]
    writes: Sequence[list[Piece]]
    mutates: Sequence[tuple[list[Piece], list[Piece]]] = ()


def _expect(before: Trace) -> dict[str, _Expected]:
    """Run the program with every storage in private memory. The key "" holds the outputs and state at the end."""
    memory = Memory()
    for ref in before.inputs:
        memory.write(ref, [Piece(0, ref.nbytes, ref.name, 0)])
    out: dict[str, _Expected] = {}
    for step in before.steps:
        reads = [memory.read(r) for r in step.reads]
        mutated = [memory.read(r) for r in step.mutates]
        writes = [_written(step, k, w, reads) for k, w in enumerate(step.writes)]
        changed = [[Piece(0, m.nbytes, f"{step.name} in {m.name}", 0)] for m in step.mutates]
        for ref, content in zip((*step.writes, *step.mutates), (*writes, *changed), strict=True):
            memory.write(ref, content)
        out[step.name] = _Expected(reads, writes, list(zip(mutated, changed, strict=True)))
    out[""] = _Expected([memory.read(r) for r in (*before.outputs, *before.state)], ())
    return out


def _written(step: Step, k: int, ref: Ref, reads: Sequence[list[Piece]]) -> list[Piece]:
    if step.moved is None:
        suffix = f".{k}" if len(step.writes) > 1 else ""
        return [Piece(0, ref.nbytes, step.name + suffix, 0)]
    pieces = []
    for move in sorted(m for m in step.moved if m.write == k):
        end = move.source + move.nbytes
        for p in reads[move.read]:
            low, high = max(p.low, move.source), min(p.high, end)
            if low < high:
                to = move.target - move.source
                pieces.append(Piece(low + to, high + to, p.value, p.at + low - p.low))
    return _joined(sorted(pieces, key=lambda p: p.low))


def _copy(memory: Memory, step: Step, want: _Expected | None) -> None:
    """An op that only copies bytes, old or new: it copies what it finds."""
    for w in step.writes:
        memory.write(w, [Piece(0, w.nbytes, f"half of {w.name}", 0)])
    if want is not None:
        for r, content in zip(step.reads, want.reads, strict=True):
            memory.check(r, content, f"op {step.name!r}")
    found = [memory.read(r) for r in step.reads]
    for k, w in enumerate(step.writes):
        memory.write(w, _written(step, k, w, found))


def _run(memory: Memory, step: Step, want: _Expected) -> None:
    if (len(step.reads), len(step.writes), len(step.mutates)) != tuple(
        map(len, (want.reads, want.writes, want.mutates))
    ):
        raise ReplayError(f"op {step.name!r} no longer has the operands that it had")
    in_place = _in_place(step)
    reads = list(zip(step.reads, want.reads, strict=True))
    for k in in_place:
        memory.check(*reads[k], f"op {step.name!r}")
    for w in step.writes:
        memory.write(w, [Piece(0, w.nbytes, f"half of {w.name}", 0)])
    for arena, low, high in step.scratch:
        scratch = Ref("scratch", None, high - low, ((arena, low),))
        memory.write(scratch, [Piece(0, high - low, f"scratch of {step.name}", 0)])
    for k, (r, content) in enumerate(reads):
        if k not in in_place:
            memory.check(r, content, f"op {step.name!r}")
    for m, (content, _) in zip(step.mutates, want.mutates, strict=True):
        memory.check(m, content, f"op {step.name!r}")
    results = [
        *zip(step.writes, want.writes, strict=True),
        *((m, new) for m, (_, new) in zip(step.mutates, want.mutates, strict=True)),
    ]
    for ref, content in results:
        memory.write(ref, content)
    for ref, content in results:
        memory.check(ref, content, f"the end of op {step.name!r}")


def _in_place(step: Step) -> frozenset[int]:
    """The reads that lie exactly where the one write of an elementwise op goes."""
    if len(step.writes) != 1 or step.mutates or step.scratch:
        return frozenset()
    (w,) = step.writes
    if len(w.places) != 1 or w.places[0] is None:
        return frozenset()
    reads = step.reads
    return frozenset(k for k in step.elementwise if reads[k].places == w.places and reads[k].nbytes == w.nbytes)


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
        return _joined(out)

    @staticmethod
    def _range(held: list[Piece], low: int, high: int) -> tuple[int, int]:
        """Indices of the pieces that touch ``[low, high)``."""
        first = bisect_right(held, low, key=lambda p: p.high)
        last = first
        while last < len(held) and held[last].low < high:
            last += 1
        return first, last


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
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
