"""One method of a ``.pte`` as the planner sees it.

The method is planned already, so tensors may lie in each other: a view is a value of its own at the address of its
base, an elided concat is read where its parts were written. Who shows whose bytes is found by running the method
symbolically at the addresses that it has. What it shows becomes a required tie. A
tensor that lies at an odd address may lie at one again, so that the plan that the file has is always one of those to
choose from.

State lives from before the run to after it, and all of it that overlaps moves as one: values with initial content or a
name, whatever is read, or written in part, before it is written in full. What lies in arenas that another method may
address keeps its address, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from executorch.exir.schema import ExecutionPlan, Tensor
from executorch.exir.tensor import TensorSpec

from planner import dataflow
from planner.dataflow import Dataflow, Op, OpKind, Role
from planner.executorch.in_place import may_write_in_place
from planner.executorch.views import View, copied_by
from planner.memory import Memory, Piece, Place, Ref
from planner.pte.accesses import Access, Reader, has_content, spec_of
from planner.pte.file import ProgramFile
from solvers.buffers import Colocation

aten = torch.ops.aten

RELAXED_BACKENDS = frozenset({"XnnpackBackend"})
"""Delegates whose tensors may lie at any element offset."""


@dataclass(frozen=True)
class Region:
    """Bytes ``[low, high)`` of an arena that hold state; ``fixed`` if another method may address them."""

    name: str
    arena: int
    low: int
    high: int
    fixed: bool = False

    @property
    def ref(self) -> Ref:
        """It, as an operand."""
        return Ref(self.name, self.name, self.high - self.low, ((self.arena, self.low),))


class Shown(NamedTuple):
    """What a tensor or region holds when it is read in a step."""

    name: str
    pieces: tuple[Piece, ...]
    step: int


class Method:
    """A method that was read.

    Parameters
    ----------
    file : ProgramFile
    plan : ExecutionPlan
        One of the file's.
    accesses : sequence of Access, optional
        What its instructions read and write, where that is known already.
    origin : Method, optional
        The method that this one was made from: tensors keep their names.
    regions : sequence of Region, optional
        Where state lies, where that is known already.

    Raises
    ------
    Kept
        Where the method must be left as it is.
    """

    def __init__(
        self,
        file: ProgramFile,
        plan: ExecutionPlan,
        accesses: Sequence[Access] | None = None,
        origin: Method | None = None,
        regions: Sequence[Region] | None = None,
    ) -> None:
        self.file = file
        self.plan = plan
        self.origin = origin
        self.reader = Reader(file, plan)
        self.accesses = self.reader.read() if accesses is None else list(accesses)
        self.specs = {i: spec_of(v.val) for i, v in enumerate(plan.values) if isinstance(v.val, Tensor)}
        count: Counter[str] = Counter()
        self.names: dict[int, str] = {}  # of instructions
        for a in self.accesses:
            short = a.name.split("::")[-1].split(".")[0]
            self.names[a.index] = f"{short}_{count[short]}"
            count[short] += 1
        self.regions = self._state() if regions is None else list(regions)

    def place(self, i: int) -> Place | None:
        """Arena and offset (bytes) of a value; None if it is not planned."""
        value = self.plan.values[i].val
        info = value.allocation_info if isinstance(value, Tensor) else None
        return None if info is None else (int(info.memory_id), int(info.memory_offset))

    def nbytes(self, i: int) -> int:
        """Bytes of a tensor."""
        return int(self.specs[i].nbytes())

    def tensors(self, values: Collection[int]) -> list[int]:
        """Those of some values that are tensors."""
        return [i for i in values if i in self.specs]

    @cached_property
    def labels(self) -> dict[int, str]:
        """Names of the tensors, unique: by what writes them, else by what they are."""
        names = dict(self.origin.labels) if self.origin else {}
        for k, i in enumerate(self.tensors(self.plan.inputs)):
            names.setdefault(i, f"input_{k}")
        for a in self.accesses:
            for k, i in enumerate(a.writes):
                names.setdefault(i, self.names[a.index] + (f".{k}" if len(a.writes) > 1 else ""))
        for i in self.specs:
            extra = self.plan.values[i].val.extra_tensor_info  # type: ignore[union-attr]
            known = extra.fully_qualified_name if extra is not None else None
            what = "value" if self.place(i) else "constant"
            names.setdefault(i, f"{known} (value {i})" if known else f"{what} {i}")
        return names

    def view(self, a: Access) -> View | None:
        """What an instruction copies, if it is a view that is copied."""
        if a.target is None:
            return None
        given = [i if self.reader.tensors(i) else self.reader.literal(i) for i in a.arguments]
        tensor_positions = {k for k, i in enumerate(a.arguments) if self.reader.tensors(i)}

        def specs_of(x: Any) -> list[TensorSpec]:
            is_tensor = any(given[k] is x for k in tensor_positions) if isinstance(x, int) else False
            return [self.specs[i] for i in self.reader.tensors(x)] if is_tensor else []

        return copied_by(a.target, given, specs_of, [self.specs[i] for i in a.writes])

    def concat_axis(self, a: Access) -> int | None:
        """The axis of a concat; None for other instructions."""
        if a.target is not aten.cat.out or len(a.writes) != 1 or not self.specs[a.writes[0]].shape:
            return None
        axis = self.reader.literal(a.arguments[1])
        return None if axis is None else int(axis) % len(self.specs[a.writes[0]].shape)

    def tolerant(self, a: Access) -> list[int]:
        """The tensors onto which an instruction may write its one result, element by element."""
        if a.target is None or len(a.writes) != 1 or a.mutates or not may_write_in_place(a.target):
            return []
        if self.specs[a.writes[0]].dtype.is_complex:
            return []
        kinds = ("Tensor", "Optional[Tensor]")
        given = zip(a.target._schema.arguments, a.arguments, strict=True)
        found = [i for argument, i in given if str(argument.type) in kinds and not argument.is_out]
        return list(dict.fromkeys(self.tensors(found)))

    def ref(self, i: int) -> Ref:
        """A tensor as an operand, where it lies."""
        return Ref(self.labels[i], i, self.nbytes(i), (self.place(i),))

    def _state(self) -> list[Region]:
        """The bytes that hold state; regions overlap nowhere."""
        shared = len(self.file.program.execution_plan) > 1
        state = {i for i in self.specs if self.place(i) and has_content(self.plan.values[i].val)}  # type: ignore[arg-type]
        if shared:
            state |= {i for i in self.specs if (at := self.place(i)) and at[0] > 1}
        unclear = {shown.name for shown in self.shown([]) if any(p.value is None for p in shown.pieces)}
        state |= {i for i in self.specs if self.labels[i] in unclear}
        ranges = sorted({(*at, at[1] + self.nbytes(i)) for i in state if (at := self.place(i)) and self.nbytes(i)})
        out: list[Region] = []
        for arena, low, high in ranges:
            if out and out[-1].arena == arena and low < out[-1].high:
                out[-1] = replace(out[-1], high=max(high, out[-1].high))
            else:
                out.append(Region(f"state {len(out)}", arena, low, high, shared and arena > 1))
        return out

    def shown(self, regions: Sequence[Region]) -> list[Shown]:
        """Run at the addresses that the method has: what every planned tensor that is read shows, and what the regions
        hold at the end. Pieces name tensors or regions."""
        memory = Memory(0)
        starts = [r.ref for r in regions] + [self.ref(i) for i in self.tensors(self.plan.inputs)]
        for ref in starts:
            memory.write(ref, [Piece(0, ref.nbytes, ref.name, 0)])
        out = []
        for step, a in enumerate(self.accesses):
            out += [self._shown(memory, self.ref(i), step) for i in (*a.reads, *a.mutates) if self._planned(i)]
            for ref in map(self.ref, (*a.writes, *a.mutates)):
                memory.write(ref, [Piece(0, ref.nbytes, ref.name, 0)])
        ends = [self.ref(i) for i in self.tensors(self.plan.outputs) if self._planned(i)] + [r.ref for r in regions]
        return out + [self._shown(memory, ref, len(self.accesses)) for ref in ends]

    @staticmethod
    def _shown(memory: Memory, ref: Ref, step: int) -> Shown:
        return Shown(ref.name, tuple(memory.read(ref)), step)

    def _planned(self, i: int) -> bool:
        return self.place(i) is not None and self.nbytes(i) > 0

    def flow(self, opaque: Collection[str] = ()) -> Dataflow:
        """The method as a dataflow.

        Parameters
        ----------
        opaque : collection of str
            Names of instructions that are not to share.
        """
        return _Flow(self, opaque).build()

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where every tensor and piece of the method's dataflow lies in the file, bytes."""
        made = _Flow(self, ())
        made.build()
        return {i: low for i, (_, low, _) in made.place.items()}


class _Flow:
    """What a tensor shows that others wrote gets an op of its own, without an instruction: the `showing` op stands
    behind the last of the writes, so that the tensor is born there and the others last to it."""

    def __init__(self, method: Method, opaque: Collection[str]) -> None:
        self.method = method
        self.opaque = opaque
        self.showing: dict[int, list[Op]] = defaultdict(list)  # by the step of the last write
        self.born: dict[str, int] = {}  # pieces without such an op
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
        step = {-1: -1}
        for k, a in enumerate(m.accesses):
            step[k] = len(ops)
            ops += [self._op(a), *self.showing[k]]
        born = {i: step[k] for i, k in self.born.items()}
        outputs = [m.labels[i] for i in m.tensors(m.plan.outputs)]
        return Dataflow(ops, [*self.extra, *tensors], outputs, born, (), list(self.ties))

    def _tensor(self, i: int, regions: Mapping[tuple[int, int, int], str]) -> dataflow.Tensor:
        m, spec = self.method, self.method.specs[i]
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
            str(spec.dtype).removeprefix("torch."),
            spec.dtype.itemsize,
            tuple(int(n) for n in spec.shape),
            tuple(int(d) for d in spec.dim_order),
            role,
            None if at is None else at[0],
            bool(spec.is_static_shape_tensor),
            _alignment(at[1]) if at else 16,
            i in self.rigid,
            base,
        )

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
            made = [self._tie(name, other, p, last[other]) for p, other in others.items()]
            if others and not own:
                seen.add(name)
                at = max(last.values())
                new = tuple(dict.fromkeys([name, *filter(None, made)]))
                self.showing[at].append(Op(f"show {name}", OpKind.OPAQUE, tuple(last), new, target="a view"))
                self.born = {i: k for i, k in self.born.items() if i not in new}

    def _tie(self, name: str, other: str, p: Piece, step: int) -> str:
        """Bytes ``p`` of ``name`` are bytes of ``other``, written in a step. Returns the piece that stands for them, if
        it takes one."""
        name, other = self.base.get(name, name), self.base.get(other, other)
        if name == other or Colocation(other, name, 0) in self.ties:
            return ""
        _, low, high = self.place[name]
        _, other_low, other_high = self.place[other]
        if other_low <= low and high <= other_high:
            self.ties[Colocation(name, other, low - other_low)] = None
            return ""
        if low <= other_low and other_high <= high:
            self.ties[Colocation(other, name, other_low - low)] = None
            return ""
        piece = self._piece(other, low + p.low, low + p.high)
        self.born.setdefault(piece, step)
        self.ties[Colocation(piece, other, low + p.low - other_low)] = None
        self.ties[Colocation(piece, name, p.low)] = None
        return piece

    def _piece(self, of: str, low: int, high: int) -> str:
        """The tensor for bytes of another, by address."""
        key = (of, low, high)
        if key not in self.pieces:
            arena, start, _ = self.place[of]
            name = self.pieces[key] = f"bytes {low - start} to {high - start} of {of}"
            self.place[name] = (arena, low, high)
            size = high - low
            self.extra.append(dataflow.Tensor(name, size, "uint8", 1, (size,), (0,), arena=arena, alignment=1))
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
        if (view := m.view(a)) is not None and len(a.writes) == len(view.starts) and not a.mutates:
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
