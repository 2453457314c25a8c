"""From a method to a `Dataflow`: what tensors show of each other becomes ties that must be kept.

A tensor that lies at an odd address may lie at one again, so that the plan that the file has is always one of those to
choose from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace

from planner.judge.memory import Piece
from planner.program import dataflow
from planner.program.dataflow import Dataflow, Op, OpKind, Role
from planner.pte.accesses import Access, has_content
from planner.pte.method import Method, Region
from solvers.problem.buffers import Colocation, Kind

RELAXED_BACKENDS = frozenset({"XnnpackBackend"})
"""Delegates whose tensors may lie at any element offset."""


def flow_of(method: Method, opaque: Collection[str] = ()) -> Dataflow:
    """A method as a dataflow.

    Parameters
    ----------
    method : Method
    opaque : collection of str
        Names of instructions that are not to share.
    """
    return _Builder(method, opaque).build()


def placed_flow_of(method: Method) -> tuple[Dataflow, dict[str, int]]:
    """A method as a dataflow, and where every planned tensor of it lies in the file, bytes."""
    builder = _Builder(method, ())
    flow = builder.build()
    return flow, {i: low for i, (_, low, _) in builder.place.items()}


class _Builder:
    """What a tensor shows that others wrote gets an op of its own, without an instruction: the `showing` op stands
    behind the last of the writes, so that the tensor is born there and the others last to it."""

    def __init__(self, method: Method, opaque: Collection[str]) -> None:
        self.method = method
        self.opaque = opaque
        self.showing: dict[int, list[Op]] = defaultdict(list)  # by the step of the last write
        self.ties: dict[Colocation, None] = {}
        self.pieces: dict[tuple[str, int, int], str] = {}
        self.extra: list[dataflow.Tensor] = []
        self.place: dict[str, tuple[int, int, int]] = {}  # arena, low, high
        self.base: dict[str, str] = {}

    def build(self) -> Dataflow:
        m = self.method
        self.rigid = {
            i for a in m.accesses if a.backend and a.backend not in RELAXED_BACKENDS for i in (*a.reads, *a.writes)
        }
        accessed = {i for a in m.accesses for i in (*a.reads, *a.writes, *a.mutates)}
        accessed |= set(m.tensors([*m.plan.inputs, *m.plan.outputs]))
        for r in m.regions:
            self.extra.append(_region_tensor(r))
            self.place[r.name] = (r.arena, r.low, r.high)
        by_place = {at: name for name, at in self.place.items()}
        tensors = [self._tensor(i, by_place) for i in sorted(accessed)]
        self._find_ties()
        ops = list(self.showing[-1])
        for k, a in enumerate(m.accesses):
            ops += [self._op(a), *self.showing[k]]
        outputs = [m.labels[i] for i in m.tensors(m.plan.outputs)]
        flow = Dataflow(ops, [*self.extra, *tensors], outputs, ties=list(self.ties))
        return replace(flow, ties=(*flow.ties, *self._handoffs(flow)))

    def _tensor(self, i: int, regions: Mapping[tuple[int, int, int], str]) -> dataflow.Tensor:
        m, layout = self.method, self.method.layouts[i]
        at, base = m.place(i), None
        role = Role.VALUE
        if i in m.plan.inputs:
            role = Role.INPUT
        elif at is None and has_content(m.plan.values[i].val):  # type: ignore[arg-type]
            role = Role.CONSTANT
        if at is not None:
            where = (at[0], at[1], at[1] + m.nbytes(i))
            self.place[m.labels[i]] = where
            base = regions.get(where)
            if base is not None:
                self.base[m.labels[i]] = base
        return dataflow.Tensor(
            m.labels[i],
            m.nbytes(i),
            layout.dtype,
            layout.itemsize,
            layout.shape,
            layout.dim_order,
            role,
            None if at is None else at[0],
            layout.static,
            _alignment(at[1]) if at else 16,
            i in self.rigid,
            base,
        )

    def _handoffs(self, flow: Dataflow) -> list[Colocation]:
        """Results that lie on an operand because the other ties hold both there: such writes in place are kept."""
        found = []
        for op in flow.ops:
            for operand in op.tolerates:
                (result,) = op.writes
                if self.place.get(result, 0) != self.place.get(operand, 1) or {result, operand} & self.base.keys():
                    continue
                (start, end), (born, _) = flow.lifetimes[operand], flow.lifetimes[result]
                if start < born == end - 1:
                    found.append(Colocation(result, operand, 0, Kind.HANDOFF))
        if not found:
            return []
        import networkx as nx

        tied = nx.Graph([(c.part, c.whole) for c in flow.ties])
        return [c for c in found if c.part in tied and c.whole in tied and nx.has_path(tied, c.part, c.whole)]

    def _find_ties(self) -> None:
        """What a tensor shows that another wrote is a tie between the two."""
        m = self.method
        writes: dict[str, list[int]] = defaultdict(list)
        for name in [*(r.name for r in m.regions), *(m.labels[i] for i in m.tensors(m.plan.inputs))]:
            writes[name].append(-1)
        for step, a in enumerate(m.accesses):
            for i in (*a.writes, *a.mutates):
                writes[m.labels[i]].append(step)
        seen: set[str] = set()
        for name, pieces, step in m.shown(m.regions):
            others = {p: str(p.value) for p in pieces if p.value not in (None, name)}
            last = {other: max(k for k in writes[other] if k < step) for other in others.values()}
            own = any(k < step for k in writes[name]) or name in seen or name in self.base
            shown = [self._tie(name, other, p, last[other]) for p, other in others.items()]
            if others and not own:
                seen.add(name)
                op = Op(f"show {name}", OpKind.OPAQUE, tuple(dict.fromkeys(shown)), (name,), target="a view")
                self.showing[max(last.values())].append(op)

    def _tie(self, name: str, other: str, p: Piece, step: int) -> str:
        """Bytes ``p`` of ``name`` are bytes of ``other``, written in a step. Returns what stands for them: ``other``,
        or a piece of it."""
        name, other = self.base.get(name, name), self.base.get(other, other)
        if name == other or Colocation(other, name, 0) in self.ties:
            return other
        _, low, high = self.place[name]
        _, other_low, other_high = self.place[other]
        start, end = low + p.low, low + p.high
        if (start, end) == (low, high):
            self.ties[Colocation(name, other, low - other_low)] = None
            return other
        if (start, end) == (other_low, other_high):
            self.ties[Colocation(other, name, other_low - low)] = None
            return other
        piece = self._piece(other, start, end, step)
        self.ties[Colocation(piece, other, start - other_low)] = None
        self.ties[Colocation(piece, name, p.low)] = None
        return piece

    def _piece(self, of: str, low: int, high: int, step: int) -> str:
        """The tensor for bytes of another, by address: a view of it, made behind the step that wrote them."""
        key = (of, low, high)
        if key not in self.pieces:
            arena, start, _ = self.place[of]
            name = self.pieces[key] = f"bytes {low - start} to {high - start} of {of}"
            self.place[name] = (arena, low, high)
            size = high - low
            self.extra.append(dataflow.Tensor(name, size, "uint8", 1, (size,), (0,), arena=arena, alignment=1))
            self.showing[step].append(Op(f"show {name}", OpKind.OPAQUE, (of,), (name,), target="a view"))
        return self.pieces[key]

    def _op(self, a: Access) -> Op:
        m = self.method
        name = m.names[a.index]

        def ids(values: Collection[int]) -> tuple[str, ...]:
            return tuple(m.labels[i] for i in values)

        op = Op(name, OpKind.OPAQUE, ids(a.reads), ids(a.writes), ids(a.mutates), target=a.name)
        if name in self.opaque:
            return op
        if (axis := m.concat_axis(a)) is not None:
            return replace(op, kind=OpKind.CONCAT, axis=axis)
        if (view := m.view(a)) is not None and not a.mutates:
            reads = tuple(dict.fromkeys((m.labels[view.source], *op.reads)))
            if view.axis is None:
                return replace(op, kind=OpKind.RESHAPE, reads=reads)
            return replace(
                op, kind=OpKind.SLICE, reads=reads, axis=view.axis, starts=view.starts, drops_axis=view.drops_axis
            )
        return replace(op, tolerates=ids(m.tolerant(a)))


def _region_tensor(r: Region) -> dataflow.Tensor:
    size, offset = r.high - r.low, r.low if r.fixed else None
    alignment = _alignment(r.low)
    return dataflow.Tensor(
        r.name, size, "uint8", 1, (size,), (0,), Role.STATE, r.arena, alignment=alignment, offset=offset
    )


def _alignment(offset: int) -> int:
    """What a tensor that lies there may rely on: at most 16 bytes."""
    return min(16, offset & -offset) if offset else 16
