"""What each instruction of a method reads and writes: from operator schemas, and from what delegates say of themselves.

All that is not known for sure is said, with a reason, so that it can be left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.program.tensor_layout import TensorLayout
from planner.pte.operators import MUTATED, OUT, signature_of
from planner.pte.program_file import ProgramFile, delegate_blob
from planner.pte.schema import (
    Bool,
    DelegateCall,
    DeviceType,
    Double,
    ExecutionPlan,
    FreeCall,
    Int,
    IntList,
    KernelCall,
    OptionalTensorList,
    Tensor,
    TensorList,
    TensorShapeDynamism,
)
from planner.pte.xnnpack_blob import xnnpack_outputs


class Kept(Exception):
    """Why a method is left as it is."""


@dataclass(frozen=True)
class Access:
    """One instruction.

    Attributes
    ----------
    index : int
        In the chain, before anything is rewritten.
    name : str
        Operator or backend.
    signature : str
        The operator's (`planner.pte.operators`), empty if it is not known.
    arguments : tuple of int
        Values by the signature's arguments; for what is no known operator, all.
    reads, writes, mutates : tuple of int
        Values of tensors: read, written in full, read and written in part.
    backend : str
        Of a delegate call.
    """

    index: int
    name: str
    signature: str = ""
    arguments: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    backend: str = ""


@dataclass
class Reader:
    """Reads the instructions of a method; ``unknown`` collects the operators whose schema is not known."""

    file: ProgramFile
    plan: ExecutionPlan
    unknown: set[str] = field(default_factory=set)

    def read(self) -> list[Access]:
        """All instructions in order.

        Raises
        ------
        Kept
            If the method has control flow, a device of its own, or a delegate that does not tell inputs from outputs.
        """
        plan = self.plan
        if len(plan.chains) != 1:
            raise Kept(f"it has {len(plan.chains)} chains of instructions")
        if any(d.device_type is not DeviceType.CPU for d in plan.non_const_buffer_device or ()):
            raise Kept("it has memory on another device than the CPU")
        seen = {i for i in plan.inputs if self.tensor(i)}
        seen |= {i for i, v in enumerate(plan.values) if isinstance(v.val, Tensor) and has_content(v.val)}
        out = []
        for n, instruction in enumerate(plan.chains[0].instructions):
            try:
                access = self._access(n, instruction.instr_args, seen)
            except Kept:
                raise
            except Exception as error:
                raise Kept(f"instruction {n} cannot be read: {type(error).__name__}: {error}") from error
            seen |= {*access.reads, *access.writes, *access.mutates}
            out.append(access)
        self._check_outputs(out)
        return out

    def _check_outputs(self, accesses: Sequence[Access]) -> None:
        """What a delegate is taken to write must be written by nobody else: else it was a buffer that it read."""
        written = Counter(i for a in accesses for i in (*a.writes, *a.mutates))
        for a in accesses:
            for i in a.writes if a.backend else ():
                if written[i] > 1:
                    raise Kept(f"delegate {a.name!r} (instruction {a.index}): value {i} may be a buffer that it reads")

    def tensor(self, i: int) -> Tensor | None:
        """A value, if it is a tensor."""
        value = self.plan.values[i].val
        return value if isinstance(value, Tensor) else None

    def tensors(self, i: int) -> list[int]:
        """The tensors that a value is or lists."""
        value = self.plan.values[i].val
        if isinstance(value, TensorList | OptionalTensorList):
            return [k for k in value.items if k >= 0]
        return [i] if isinstance(value, Tensor) else []

    def literal(self, i: int) -> Any:
        """A value that is no tensor, as Python's; None if it is none that is known before the run."""
        value = self.plan.values[i].val
        if isinstance(value, Int):
            return value.int_val
        if isinstance(value, Bool):
            return value.bool_val
        if isinstance(value, Double):
            return float(value.double_val)
        if isinstance(value, IntList):
            return [self.literal(k) for k in value.items]
        return None

    def _access(self, n: int, call: object, seen: set[int]) -> Access:
        if isinstance(call, KernelCall):
            return self._kernel(n, call)
        if isinstance(call, DelegateCall):
            return self._delegate(n, call, seen)
        if isinstance(call, FreeCall):
            if (t := self.tensor(call.value_index)) and t.allocation_info is not None:
                raise Kept(f"instruction {n} frees a planned tensor")
            return Access(n, "free")
        raise Kept(f"it has control flow (instruction {n} is a {type(call).__name__})")

    def _kernel(self, n: int, call: KernelCall) -> Access:
        operator = self.plan.operators[call.op_index]
        name = f"{operator.name}.{operator.overload}" if operator.overload else operator.name
        if operator.name == "executorch_prim::et_view":
            raise Kept(f"instruction {n}, {name}, makes a view of a tensor of dynamic shape")
        signature = signature_of(name)
        if signature is None or len(call.args) < len(signature):
            tensors = tuple(dict.fromkeys(k for i in call.args for k in self.tensors(i)))
            if tensors:
                self.unknown.add(name)
            return Access(n, name, "", tuple(call.args), mutates=tensors)
        found: dict[str, list[int]] = {OUT: [], MUTATED: []}
        reads: list[int] = []
        for letter, i in zip(signature, call.args, strict=False):
            found.get(letter, reads).extend(self.tensors(i))
        writes, mutates = (tuple(dict.fromkeys(found[letter])) for letter in (OUT, MUTATED))
        return Access(n, name, signature, tuple(call.args[: len(signature)]), tuple(reads), writes, mutates)

    def _delegate(self, n: int, call: DelegateCall, seen: set[int]) -> Access:
        """Inputs come before outputs. XNNPACK's blob says which is which; else an argument is an input if it was seen
        before, an output if it was not and nothing written before lies there."""
        backend = self.plan.delegates[call.delegate_index].id
        args = [i for i in call.args if self.tensor(i)]
        if backend == "XnnpackBackend":
            outputs = xnnpack_outputs(delegate_blob(self.file, self.plan, call.delegate_index), len(call.args))
            if outputs is not None:
                out = [call.args[k] for k in outputs]
                return self._delegate_access(n, backend, [i for i in args if i not in out], out)
        known = [k for k, i in enumerate(args) if i in seen]
        first = known[-1] + 1 if known else 0
        fresh = args[first:]
        if not fresh or not set(args[:first]) <= seen:
            raise Kept(f"delegate {backend!r} (instruction {n}) does not tell its inputs from its outputs")
        shown = [i for i in fresh[:-1] if any(_overlap(self.tensor(i), self.tensor(k)) for k in seen)]
        if shown:
            raise Kept(f"delegate {backend!r} (instruction {n}): value {shown[0]} may be a view that it reads")
        return self._delegate_access(n, backend, args[:first], fresh)

    def _delegate_access(self, n: int, backend: str, reads: Sequence[int], writes: Sequence[int]) -> Access:
        return Access(n, backend, reads=tuple(reads), writes=tuple(writes), backend=backend)


def has_content(t: Tensor) -> bool:
    """Has a tensor a value before the run: a constant, an initialised or a named buffer?"""
    extra = t.extra_tensor_info
    return t.data_buffer_idx > 0 or (extra is not None and bool(extra.fully_qualified_name))


def _overlap(one: Tensor | None, other: Tensor | None) -> bool:
    """May two planned tensors share bytes?"""
    if one is None or other is None or one.allocation_info is None or other.allocation_info is None:
        return False
    a, b = one.allocation_info, other.allocation_info
    if a.memory_id != b.memory_id:
        return False
    return bool(a.memory_offset < b.memory_offset + size_of(other) and b.memory_offset < a.memory_offset + size_of(one))


def size_of(t: Tensor) -> int:
    """Bytes of a tensor; at most, if its shape is dynamic."""
    return layout_of(t).nbytes


def layout_of(t: Tensor) -> TensorLayout:
    """How a tensor of a file lies in memory."""
    static = t.shape_dynamism is TensorShapeDynamism.STATIC
    kind = t.scalar_type
    return TensorLayout(kind.dtype, kind.itemsize, tuple(t.sizes), tuple(t.dim_order), static)
