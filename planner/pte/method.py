"""One method of a ``.pte`` as the planner sees it.

The method is planned already, so tensors may lie in each other: a view is a value of its own at the address of its
base, an elided concat is read where its parts were written. Who shows whose bytes is found by running the method
symbolically at the addresses that it has.

State lives from before the run to after it, and all of it that overlaps moves as one: values with initial content or a
name, whatever is read, or written in part, before it is written in full. What lies in arenas that another method may
address keeps its address, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from planner.judge.memory import Memory, Piece, Place, Ref
from planner.program.kernels import may_write_in_place
from planner.program.views import View, copied_by
from planner.pte.accesses import Access, Kept, Reader, has_content, layout_of
from planner.pte.operators import TENSOR
from planner.pte.program_file import ProgramFile
from planner.pte.schema import ExecutionPlan, Tensor


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
        self.layouts = {i: layout_of(v.val) for i, v in enumerate(plan.values) if isinstance(v.val, Tensor)}
        count = Counter({"input": len(plan.inputs)})  # an operator may be called so; inputs are input_0, input_1, ...
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
        return self.layouts[i].nbytes

    def tensors(self, values: Collection[int]) -> list[int]:
        """Those of some values that are tensors."""
        return [i for i in values if i in self.layouts]

    @cached_property
    def labels(self) -> dict[int, str]:
        """Names of the tensors, unique: by what writes them, else by what they are."""
        names = dict(self.origin.labels) if self.origin else {}
        for k, i in enumerate(self.tensors(self.plan.inputs)):
            names.setdefault(i, f"input_{k}")
        for a in self.accesses:
            for k, i in enumerate(a.writes):
                names.setdefault(i, self.names[a.index] + (f".{k}" if len(a.writes) > 1 else ""))
        for i in self.layouts:
            extra = self.plan.values[i].val.extra_tensor_info  # type: ignore[union-attr]
            known = extra.fully_qualified_name if extra is not None else None
            what = "value" if self.place(i) else "constant"
            names.setdefault(i, f"{known} (value {i})" if known else f"{what} {i}")
        return names

    def view(self, a: Access) -> View | None:
        """What an instruction copies, if it is a view that is copied."""
        if not a.signature:
            return None
        given = [i if self.reader.tensors(i) else self.reader.literal(i) for i in a.arguments]
        outs = [self.layouts[i] for i in a.writes]
        return copied_by(a.name, given, lambda i: [self.layouts[k] for k in self.reader.tensors(i)], outs)

    def concat_axis(self, a: Access) -> int | None:
        """The axis of a concat; None for other instructions."""
        if a.name != "aten::cat.out" or not a.signature or len(a.writes) != 1 or not self.layouts[a.writes[0]].shape:
            return None
        axis = self.reader.literal(a.arguments[1])
        return None if axis is None else int(axis) % len(self.layouts[a.writes[0]].shape)

    def tolerant(self, a: Access) -> list[int]:
        """The tensors onto which an instruction may write its one result, element by element."""
        if not a.signature or len(a.writes) != 1 or a.mutates or not may_write_in_place(a.name):
            return []
        if self.layouts[a.writes[0]].is_complex:
            return []
        found = [i for letter, i in zip(a.signature, a.arguments, strict=True) if letter == TENSOR]
        return list(dict.fromkeys(self.tensors(found)))

    def ref(self, i: int) -> Ref:
        """A tensor as an operand, where it lies."""
        return Ref(self.labels[i], i, self.nbytes(i), (self.place(i),))

    def _state(self) -> list[Region]:
        """The bytes that hold state; regions overlap nowhere."""
        shared = len(self.file.program.execution_plan) > 1
        state = {i for i in self.layouts if self.place(i) and has_content(self.plan.values[i].val)}  # type: ignore[arg-type]
        if shared:
            state |= {i for i in self.layouts if (at := self.place(i)) and at[0] > 1}
        unclear = {shown.name for shown in self.shown([]) if any(p.value is None for p in shown.pieces)}
        state |= {i for i in self.layouts if self.labels[i] in unclear}
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


def read_method(file: ProgramFile, plan: ExecutionPlan) -> Method:
    """Read a method.

    Raises
    ------
    Kept
        Where it must be left as it is: also where it cannot be read, for a reason that nobody thought of.
    """
    try:
        return Method(file, plan)
    except Kept:
        raise
    except Exception as error:
        raise Kept(f"it cannot be read: {type(error).__name__}: {error}") from error
