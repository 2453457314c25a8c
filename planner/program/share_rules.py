"""When tensors may share storage: the rules that look at one op.

A concat's parts may lie in its result, a slice in what it is cut from, a reshape's result on its operand (``same``); an
elementwise result may be written onto an operand that dies there (``handoff``). What no tie can express is refused
with a reason. Whether ties go together, and what they cost, is for the solver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from planner.program.dataflow import Dataflow, Op, OpKind, Role, Tensor
from solvers.problem.buffers import Colocation, Kind


class Share(StrEnum):
    """What kind of sharing an op allows."""

    CONCAT = "concat"
    VIEW = "view"
    IN_PLACE = "in place"


@dataclass(frozen=True, slots=True)
class Tie:
    """One optional colocation. ``position`` counts a concat's parts, a view's results, an op's tolerant operands."""

    colocation: Colocation
    position: int


@dataclass(frozen=True)
class Candidate:
    """What one op could share.

    Attributes
    ----------
    op : Op
    share : Share
    ties : tuple of Tie
    sizes : tuple of int
        Bytes of every position.
    refused : dict of int to str
        Why a position has no tie; -1 stands for the whole op.
    """

    op: Op
    share: Share
    ties: tuple[Tie, ...] = ()
    sizes: tuple[int, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes that the op copies when it runs; nothing for an op that computes."""
        return 0 if self.share is Share.IN_PLACE else sum(self.sizes)


class Refused(Exception):
    """Why an op or one of its operands cannot share."""


def candidate_of(flow: Dataflow, op: Op) -> Candidate | None:
    """What an op could share; None if it is of no kind that could.

    Parameters
    ----------
    flow : Dataflow
    op : Op
    """
    kinds = {OpKind.CONCAT: _concat, OpKind.SLICE: _slice, OpKind.RESHAPE: _reshape}
    if op.kind in kinds:
        share = Share.CONCAT if op.kind is OpKind.CONCAT else Share.VIEW
        sizes = tuple(flow.by_id[i].nbytes for i in (op.reads if share is Share.CONCAT else op.writes))
        try:
            ties, refused = kinds[op.kind](flow, op)
        except Refused as why:
            return Candidate(op, share, (), sizes, {-1: str(why)})
        return Candidate(op, share, tuple(ties), sizes, refused)
    if op.tolerates:
        ties, refused = _in_place(flow, op)
        sizes = tuple(flow.by_id[i].nbytes for i in op.tolerates)
        return Candidate(op, Share.IN_PLACE, tuple(ties), sizes, refused)
    return None


Ties = tuple[list[Tie], dict[int, str]]


def _concat(flow: Dataflow, op: Op) -> Ties:
    """Part ``k`` lies in the result behind the parts before it."""
    whole = flow.by_id[op.writes[0]]
    root = flow.root(whole.id)
    _check_value(flow, whole, "result")
    _check_contiguous(whole, op.axis, "the concat's")
    inner = _inner(whole, op.axis)
    ties: list[Tie] = []
    refused: dict[int, str] = {}
    at = 0
    for k, part in enumerate(flow.by_id[i] for i in op.reads):
        if not part.nbytes:
            continue
        _check_alike(flow, part, whole, "part")
        try:
            _check_part(flow, part, root)
            ties.append(Tie(_same(flow, part, root, at), k))
        except Refused as why:
            refused[k] = str(why)
        at += part.shape[op.axis] * inner * part.itemsize
    if at != whole.nbytes:
        raise Refused(f"the parts hold {at} bytes, the result {whole.nbytes}")
    return ties, refused


def _slice(flow: Dataflow, op: Op) -> Ties:
    """Each result lies in the operand where it starts."""
    whole = flow.by_id[op.reads[0]]
    root = flow.root(whole.id)
    _check_operand(flow, whole)
    ties: list[Tie] = []
    refused: dict[int, str] = {}
    for k, (start, out) in enumerate(zip(op.starts, (flow.by_id[i] for i in op.writes), strict=True)):
        if not out.nbytes:
            continue
        try:
            at = 0
            if out.nbytes != whole.nbytes:
                _check_contiguous(whole, op.axis, "the slice's")
                at = start * _inner(whole, op.axis) * whole.itemsize
            kept = [d for d in whole.dim_order if not (op.drops_axis and d == op.axis)]
            _check_layout(out, tuple(sorted(kept).index(d) for d in kept))
            _check_value(flow, out, "result")
            ties.append(Tie(_same(flow, out, root, at), k))
        except Refused as why:
            refused[k] = str(why)
    return ties, refused


def _reshape(flow: Dataflow, op: Op) -> Ties:
    """The result lies on the operand."""
    whole, out = flow.by_id[op.reads[0]], flow.by_id[op.writes[0]]
    _check_operand(flow, whole)
    _check_value(flow, out, "result")
    if (whole.dtype, whole.nbytes) != (out.dtype, out.nbytes):
        raise Refused(f"the result is {out.nbytes} bytes of {out.dtype}, the operand {whole.nbytes} of {whole.dtype}")
    if _real_dimensions(whole) != _real_dimensions(out):
        raise Refused(f"the elements of {whole.id!r} and {out.id!r} lie in another order")
    return ([Tie(_same(flow, out, flow.root(whole.id), 0), 0)] if out.nbytes else []), {}


def _in_place(flow: Dataflow, op: Op) -> Ties:
    """The result is written onto an operand that dies there."""
    ties: list[Tie] = []
    refused: dict[int, str] = {}
    seen: set[str] = set()
    for k, i in enumerate(op.tolerates):
        root = flow.root(i)
        if root.id in seen:
            continue
        seen.add(root.id)
        try:
            ties.append(Tie(_handoff(flow, op, flow.by_id[i], root), k))
        except Refused as why:
            refused[k] = str(why)
    return ties, refused


def _handoff(flow: Dataflow, op: Op, operand: Tensor, root: Tensor) -> Colocation:
    out = flow.by_id[op.writes[0]]
    _check_operand(flow, operand)
    _check_value(flow, out, "result")
    if (operand.dtype, operand.shape, operand.dim_order) != (out.dtype, out.shape, out.dim_order):
        raise Refused(f"operand {operand.id!r} has another dtype, shape or dim_order than the result")
    target = flow.root(out.id)
    others = [t for t in map(flow.by_id.__getitem__, op.reads) if flow.root(t.id) is root]
    if any((t.shape, t.dim_order) != (out.shape, out.dim_order) or t.id not in op.tolerates for t in others):
        raise Refused(f"operand {operand.id!r} is also read in another way")
    if root.role is Role.STATE:
        raise Refused(f"operand {operand.id!r} is a mutable buffer")
    if root.nbytes != out.nbytes or target.nbytes != out.nbytes or root.size != target.size:
        raise Refused(f"operand {operand.id!r} and the result are not all of their storage")
    if target.arena != root.arena:
        raise Refused(f"operand {operand.id!r} is planned into arena {root.arena}, the result into another")
    born, end = flow.lifetimes[target.id][0], flow.lifetimes[root.id][1]
    if end != born + 1:
        raise Refused(f"operand {operand.id!r} is still needed later")
    if not flow.lifetimes[root.id][0] < born:
        raise Refused(f"operand {operand.id!r} is born in the same step")
    return Colocation(target.id, root.id, 0, Kind.HANDOFF, required=False, saves=0)


def _same(flow: Dataflow, part: Tensor, whole: Tensor, at: int) -> Colocation:
    root = flow.root(part.id)
    if root.nbytes != part.nbytes:
        raise Refused(f"{part.id!r} is a view of {root.id!r} with another size")
    for t in (root, whole):
        if t.role is Role.RESULT:
            raise Refused(f"{t.id!r} is a result of a branch: the runtime may let it lie elsewhere")
    if root.id == whole.id:
        raise Refused(f"{part.id!r} is {whole.id!r} itself")
    if root.arena != whole.arena:
        raise Refused(f"{part.id!r} is planned into arena {root.arena}, {whole.id!r} into {whole.arena}")
    if at + root.size > whole.size:
        raise Refused(f"{part.id!r} needs {root.size} bytes: more than {whole.id!r} has there")
    return Colocation(root.id, whole.id, at, Kind.SAME, required=False, saves=part.nbytes)


def _inner(t: Tensor, axis: int) -> int:
    """Elements between neighbours along ``axis``."""
    return math.prod(t.shape[d] for d in t.dim_order[t.dim_order.index(axis) + 1 :])


def _real_dimensions(t: Tensor) -> list[tuple[int, int]]:
    """Dimensions of more than one element, outermost in memory first: rank among them, and extent."""
    real = [d for d, n in enumerate(t.shape) if n != 1]
    return [(real.index(d), t.shape[d]) for d in t.dim_order if t.shape[d] != 1]


def _check_contiguous(whole: Tensor, axis: int, whose: str) -> None:
    outer = [d for d in whole.dim_order[: whole.dim_order.index(axis)] if whole.shape[d] != 1]
    if outer:
        raise Refused(
            f"not contiguous: dimension {outer[0]} of extent {whole.shape[outer[0]]} lies outside {whose} "
            f"dimension {axis} in dim_order {list(whole.dim_order)}"
        )


def _check_layout(out: Tensor, dim_order: tuple[int, ...]) -> None:
    if out.dim_order != dim_order:
        raise Refused(f"mixed dim_order: {out.id!r} has {list(out.dim_order)}, the operand {list(dim_order)}")


def _check_alike(flow: Dataflow, part: Tensor, whole: Tensor, what: str) -> None:
    """Rules that a copy into the part's place needs as well."""
    _check_static(flow, part, what)
    if part.dtype != whole.dtype:
        raise Refused(f"mixed dtype: {what} {part.id!r} is {part.dtype}, the result {whole.dtype}")
    if part.dim_order != whole.dim_order:
        raise Refused(
            f"mixed dim_order: {what} {part.id!r} has {list(part.dim_order)}, the result {list(whole.dim_order)}"
        )


def _check_part(flow: Dataflow, part: Tensor, whole: Tensor) -> None:
    root = flow.root(part.id)
    if root.role is Role.CONSTANT:
        raise Refused(f"part {part.id!r} is a constant")
    if root.role is Role.STATE:
        raise Refused(f"part {part.id!r} is a mutable buffer")
    _check_own(root, f"part {part.id!r}")
    _check_value(flow, part, "part")


def _check_operand(flow: Dataflow, t: Tensor) -> None:
    """Rules for a tensor whose bytes others show; it may be written in place after their last use."""
    if flow.root(t.id).role is Role.CONSTANT:
        raise Refused(f"operand {t.id!r} is a constant")
    _check_own(flow.root(t.id), f"operand {t.id!r}")
    _check_static(flow, t, "operand")
    if flow.root(t.id).arena is None:
        raise Refused(f"operand {t.id!r} is not memory-planned")


def _check_own(root: Tensor, what: str) -> None:
    if root.role is Role.CALLER:
        raise Refused(f"{what} is an input of a branch: the caller's tensor")


def _check_value(flow: Dataflow, t: Tensor, what: str) -> None:
    _check_static(flow, t, what)
    root = flow.root(t.id)
    if root.arena is None:
        raise Refused(f"{what} {t.id!r} is not memory-planned")
    if root.id in flow.mutated:
        raise Refused(f"{what} {t.id!r} is written in place")


def _check_static(flow: Dataflow, t: Tensor, what: str) -> None:
    root = flow.root(t.id)
    op = flow.writer.get(root.id)
    if root.role is Role.REGION or (op is not None and op.kind is OpKind.CONTROL_FLOW):
        raise Refused(f"{what} {t.id!r} is an output of control flow")
    if not t.static or not root.static:
        raise Refused(f"{what} {t.id!r} has a dynamic shape")
