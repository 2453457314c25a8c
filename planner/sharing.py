"""Which concats need not run: their parts are written where the concat would have put them.

A concat is elided only if every part can be placed; else it runs, and the reason is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from planner.dataflow import Dataflow, Op, OpKind, Role, Tensor
from solvers.buffers import Buffer, Colocation
from solvers.groups import build_groups
from solvers.optional import accept_in_batches


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one concat. ``reason`` says why it was refused; ``nbytes`` is what it copies when it runs."""

    op: str
    elided: bool
    nbytes: int
    reason: str = ""


@dataclass(frozen=True)
class Sharing:
    """The concats to elide, as colocations of tensors that own bytes."""

    colocations: tuple[Colocation, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def elided(self) -> tuple[str, ...]:
        """Names of the elided ops."""
        return tuple(d.op for d in self.decisions if d.elided)


@dataclass(frozen=True)
class _Candidate:
    op: Op
    ties: tuple[Colocation, ...]
    nbytes: int


class Refused(Exception):
    """Why a concat cannot be elided."""


def no_sharing(flow: Dataflow, reason: str) -> Sharing:
    """Every concat runs, for one reason."""
    return Sharing((), tuple(Decision(op.name, False, _copied(flow, op), reason) for op in _concats(flow)))


def share_concats(flow: Dataflow, skip: Collection[str] = (), min_part_alignment: int = 1) -> Sharing:
    """Decide which concats are elided.

    Parameters
    ----------
    flow : Dataflow
    skip : collection of str
        Ops that run whatever could be: eliding them would cost memory.
    min_part_alignment : int
        Bytes; a part's place must be a multiple of it. The element size always holds.

    Returns
    -------
    Sharing
        Those that move most bytes come first when places contradict each other.
    """
    candidates: list[_Candidate] = []
    refused: dict[str, str] = {}
    for op in _concats(flow):
        try:
            if op.name in skip:
                raise Refused("eliding it would make the arena larger")
            candidates.append(_candidate(flow, op))
        except Refused as why:
            refused[op.name] = str(why)

    def check(some: list[_Candidate]) -> None:
        ties = [t for c in some for t in c.ties]
        build_groups(tied_buffers(flow, ties, min_part_alignment), ties)

    taken, conflicts = accept_in_batches(sorted(candidates, key=lambda c: -c.nbytes), check)
    refused |= {c.op.name: f"conflicting place: {why}" for c, why in conflicts}
    chosen = {c.op.name for c in taken}
    decisions = [
        Decision(op.name, op.name in chosen, _copied(flow, op), refused.get(op.name, "")) for op in _concats(flow)
    ]
    ties = [t for c in candidates if c.op.name in chosen for t in c.ties]
    return Sharing(tuple(dict.fromkeys(ties)), tuple(decisions))


def buffer_of(flow: Dataflow, t: Tensor, is_part: bool, min_part_alignment: int) -> Buffer:
    """The storage request of a tensor that owns bytes; a part needs only its element size as alignment."""
    start, end = flow.lifetimes[t.id]
    alignment = math.lcm(t.itemsize, min_part_alignment) if is_part and not t.rigid else t.alignment
    return Buffer(t.id, t.size, start, end, alignment)


def tied_buffers(flow: Dataflow, ties: Iterable[Colocation], min_part_alignment: int) -> list[Buffer]:
    """The buffers that the ties name, checked to fit into each other."""
    ties = list(ties)
    parts = {t.part for t in ties}
    ids = dict.fromkeys(i for t in ties for i in (t.part, t.whole))
    buffers = {i: buffer_of(flow, flow.by_id[i], i in parts, min_part_alignment) for i in ids}
    for t in ties:
        t.check_between(buffers[t.part], buffers[t.whole])
    return list(buffers.values())


def _concats(flow: Dataflow) -> list[Op]:
    return [op for op in flow.ops if op.kind is OpKind.CONCAT]


def _copied(flow: Dataflow, op: Op) -> int:
    return flow.by_id[op.writes[0]].nbytes


def _candidate(flow: Dataflow, op: Op) -> _Candidate:
    """The ties that elide this concat, by the rules that look at it alone."""
    whole = flow.by_id[op.writes[0]]
    parts = [flow.by_id[i] for i in op.reads if flow.by_id[i].nbytes]
    _check_whole(flow, op, whole)
    inner = math.prod(whole.shape[d] for d in whole.dim_order[whole.dim_order.index(op.axis) + 1 :])
    ties: list[Colocation] = []
    at = 0
    for part in parts:
        _check_part(flow, part, whole, op.axis)
        root = flow.root(part.id)
        if any(t.part == root.id for t in ties):
            raise Refused(f"duplicate: {root.id!r} is a part twice")
        if root.nbytes != part.nbytes:
            raise Refused(f"part {part.id!r} is a view of {root.id!r} with another size")
        ties.append(Colocation(root.id, flow.root(whole.id).id, at))
        at += part.shape[op.axis] * inner * part.itemsize
    if at != whole.nbytes:
        raise Refused(f"the parts hold {at} bytes, the result {whole.nbytes}")
    return _Candidate(op, tuple(ties), whole.nbytes)


def _check_whole(flow: Dataflow, op: Op, whole: Tensor) -> None:
    _check_tensor(flow, whole, "result")
    outer = [d for d in whole.dim_order[: whole.dim_order.index(op.axis)] if whole.shape[d] != 1]
    if outer:
        raise Refused(
            f"not contiguous: dimension {outer[0]} of extent {whole.shape[outer[0]]} lies outside the concat's "
            f"dimension {op.axis} in dim_order {list(whole.dim_order)}"
        )


def _check_part(flow: Dataflow, part: Tensor, whole: Tensor, axis: int) -> None:
    root = flow.root(part.id)
    if root.role is Role.CONSTANT:
        raise Refused(f"part {part.id!r} is a constant")
    if root.role is Role.STATE:
        raise Refused(f"part {part.id!r} is a mutable buffer")
    _check_tensor(flow, part, "part")
    if part.dtype != whole.dtype:
        raise Refused(f"mixed dtype: part {part.id!r} is {part.dtype}, the result {whole.dtype}")
    if part.dim_order != whole.dim_order:
        raise Refused(
            f"mixed dim_order: part {part.id!r} has {list(part.dim_order)}, the result {list(whole.dim_order)}"
        )
    if root.arena != flow.root(whole.id).arena:
        raise Refused(f"part {part.id!r} is planned into arena {root.arena}, the result into another")


def _check_tensor(flow: Dataflow, t: Tensor, what: str) -> None:
    root = flow.root(t.id)
    op = flow.writer.get(root.id)
    if root.role is Role.REGION or (op is not None and op.kind is OpKind.CONTROL_FLOW):
        raise Refused(f"{what} {t.id!r} is an output of control flow")
    if not t.static or not root.static:
        raise Refused(f"{what} {t.id!r} has a dynamic shape")
    if root.arena is None:
        raise Refused(f"{what} {t.id!r} is not memory-planned")
    if root.id in flow.mutated:
        raise Refused(f"{what} {t.id!r} is written in place")
