"""The second judge: it runs the rewritten program symbolically on byte ranges.

The program *before* rewriting is run with every storage in private memory; this says which bytes each read must see.
Then the rewritten program is run at its planned addresses, and each read must see just these bytes. Inputs are
written in any order before step 0; every op may write its outputs, in any order, before it reads, but for an
elementwise op's read that lies exactly where the result goes. Ops that only copy bytes may come, go and move: they copy
what they find. Outputs and state must hold at the end. Near-linear: memory is an interval map.

It knows nothing of dataflows, lifetimes or sharing: the front end takes its `Trace` straight from the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.judge.memory import Memory, Piece, Ref, ReplayError, joined, judging


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


def replay(before: Trace, after: Trace, planned_before: bool = False) -> None:
    """Judge a rewritten and planned program.

    Parameters
    ----------
    before : Trace
        The program as it was; its places are not looked at.
    after : Trace
        The program as it will run.
    planned_before : bool
        The program as it was is planned already, and rightly: it is run at its places, where tensors may show each
        other's bytes.

    Raises
    ------
    ReplayError
        At the first read that would not see what it saw before; `UnjudgedError` at an op that cannot be judged.
    """
    expected = _expect(before, Memory(0 if planned_before else None))
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
        with judging(step.name):
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


def _expect(before: Trace, memory: Memory) -> dict[str, _Expected]:
    """Run the program in the given memory. The key "" holds the outputs and state at the end."""
    for ref in before.inputs:
        memory.write(ref, [Piece(0, ref.nbytes, ref.name, 0)])
    out: dict[str, _Expected] = {}
    for step in before.steps:
        with judging(step.name):
            out[step.name] = _first_run(step, memory)
    out[""] = _Expected([memory.read(r) for r in (*before.outputs, *before.state)], ())
    return out


def _first_run(step: Step, memory: Memory) -> _Expected:
    reads = [memory.read(r) for r in step.reads]
    mutated = [memory.read(r) for r in step.mutates]
    writes = [_written(step, k, w, reads) for k, w in enumerate(step.writes)]
    changed = [[Piece(0, m.nbytes, f"{step.name} in {m.name}", 0)] for m in step.mutates]
    for ref, content in zip((*step.writes, *step.mutates), (*writes, *changed), strict=True):
        memory.write(ref, content)
    return _Expected(reads, writes, list(zip(mutated, changed, strict=True)))


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
    return joined(sorted(pieces, key=lambda p: p.low))


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
