"""Programs of single kernel calls, written straight into a ``.pte``, whose result is forced onto an operand.

An export decides for itself which overload a model reaches and where its tensors lie. Here each call is written as the
emitter writes it (`test_calls_are_written_as_the_emitter_writes_them`), so that every overload, dtype, shape and place
can be had.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.tensor import dim_order_from_stride, scalar_type_enum
from executorch.runtime import Runtime

APART = -1  # the result lies apart from all operands
_TREE = schema.ContainerMetadata("", "")


def overload(name: str) -> torch._ops.OpOverload:
    """The out overload that the runtime calls ``name``, as ``aten::add.out``."""
    namespace, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), which or "default")


def inputs_of(op: torch._ops.OpOverload) -> list[torch.Argument]:
    """The arguments of an out overload but for ``out``."""
    return [a for a in op._schema.arguments if not a.is_out]


def functional(op: torch._ops.OpOverload) -> torch._ops.OpOverload:
    """The overload without ``out`` and otherwise the same argument types."""
    types = [str(a.type) for a in inputs_of(op)]
    (found,) = (
        f
        for f in (getattr(op.overloadpacket, name) for name in op.overloadpacket.overloads())
        if [str(a.type) for a in f._schema.arguments] == types
    )
    return found


@dataclass(frozen=True)
class Call:
    """One kernel call.

    Attributes
    ----------
    op : OpOverload
        The out overload.
    arguments : tuple
        All arguments but ``out``, in the schema's order. One tensor given twice is one value of the program.
    wanted : Tensor
        Eager's result.
    on : int
        Position of the argument that the result lies on, or `APART`.
    """

    op: torch._ops.OpOverload
    arguments: tuple[Any, ...]
    wanted: torch.Tensor
    on: int = APART

    @property
    def tensors(self) -> list[torch.Tensor]:
        return list({id(a): a for a in self.arguments if isinstance(a, torch.Tensor)}.values())


def call(op: torch._ops.OpOverload, *arguments: Any) -> Call:
    """A call, with what eager makes of it, in the dim order of the operands that have its shape.

    Raises what eager raises where that refuses the arguments.
    """
    accepted = functional(op)._schema.arguments
    positional = [v for v, a in zip(arguments, accepted, strict=True) if not a.kwarg_only]
    named = {a.name: v for v, a in zip(arguments, accepted, strict=True) if a.kwarg_only}
    wanted = functional(op)(*positional, **named)
    like = next((a for a in arguments if isinstance(a, torch.Tensor) and a.shape == wanted.shape), wanted.contiguous())
    return Call(op, tuple(arguments), torch.empty_like(like, dtype=wanted.dtype).copy_(wanted))


def program(methods: Mapping[str, Sequence[Call]]) -> bytes:
    """A ``.pte`` with one method for each name; its inputs are the calls' tensors in turn, its outputs the results."""
    plans = [_Plan(name).of(calls) for name, calls in methods.items()]
    empty = schema.SubsegmentOffsets(0, [])
    whole = schema.Program(0, plans, [schema.Buffer(b"")], [], [], empty, None, None)
    return bytes(serialize_pte_binary(PTEFile(whole), extract_delegate_segments=True))


class Loaded:
    """A program on the stock runtime."""

    def __init__(self, methods: Mapping[str, Sequence[Call]]) -> None:
        self.methods = methods
        self.program = Runtime.get().load_program(program(methods))

    def run(self, name: str) -> list[torch.Tensor] | None:
        """The results of a method's calls, or None if a kernel refuses its arguments."""
        method = self.program.load_method(name)
        try:
            got = method.execute([t for c in self.methods[name] for t in c.tensors])
        except RuntimeError:
            return None
        return [x.clone() for x in got]


@cache
def _dim_order(stride: tuple[int, ...]) -> list[int]:
    return [int(d) for d in dim_order_from_stride(stride)]


class _Plan:
    """Writes one execution plan."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[schema.EValue] = []
        self.size = 0

    def of(self, calls: Iterable[Call]) -> schema.ExecutionPlan:
        inputs: list[int] = []
        outputs: list[int] = []
        instructions: list[schema.Instruction] = []
        operators: dict[tuple[str, str], int] = {}
        for number, c in enumerate(calls):
            given: dict[int, int] = {}
            for t in c.tensors:
                # every other call has its tensors where no vector is aligned
                given[id(t)] = self._tensor(t, self._room(t, shift=number % 2))
                inputs.append(given[id(t)])
            if c.on == APART:
                place = self._room(c.wanted, shift=number % 2)
            else:
                place = self.values[given[id(c.arguments[c.on])]].val.allocation_info.memory_offset
            out = self._tensor(c.wanted, place)
            outputs.append(out)
            arguments = [
                given[id(v)] if isinstance(v, torch.Tensor) else self._constant(v, a.type)
                for v, a in zip(c.arguments, inputs_of(c.op), strict=True)
            ]
            key = (c.op._schema.name, c.op._schema.overload_name)
            index = operators.setdefault(key, len(operators))
            instructions.append(schema.Instruction(schema.KernelCall(index, [*arguments, out, out])))
        return schema.ExecutionPlan(
            self.name,
            _TREE,
            self.values,
            inputs,
            outputs,
            [schema.Chain([], [], instructions, None)],
            [schema.Operator(*key) for key in operators],
            [],
            [0, max(self.size, 16)],
        )

    def _add(self, value: Any) -> int:
        self.values.append(schema.EValue(value))
        return len(self.values) - 1

    def _room(self, t: torch.Tensor, shift: int) -> int:
        place = math.ceil(self.size / 16) * 16 + shift * t.element_size()
        self.size = place + t.nbytes
        return place

    def _tensor(self, t: torch.Tensor, place: int) -> int:
        order = _dim_order(t.stride())
        allocation = schema.AllocationDetails(1, place, 0)
        static = schema.TensorShapeDynamism.STATIC
        kind = scalar_type_enum(t.dtype)
        return self._add(schema.Tensor(kind, 0, list(t.shape), order, False, 0, 0, allocation, static))

    def _constant(self, value: Any, kind: Any) -> int:
        if isinstance(value, list) and str(kind) == "List[int]":
            return self._add(schema.IntList([self._add(schema.Int(v)) for v in value]))
        if isinstance(value, list):
            return self._add(schema.BoolList(value))
        makers = {
            type(None): lambda v: schema.Null(),
            bool: schema.Bool,
            int: schema.Int,
            float: schema.Double,
            str: schema.String,
        }
        return self._add(makers[type(value)](value))


# What calls are made of.
LARGE = (70_000,)  # kernels that split work among threads do so here
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (33,), (1000,), (3, 5), (0, 4))
IMAGE = (2, 3, 4, 5)  # channels last
BROADCASTS = {(1000,): [(1,), ()], (3, 5): [(5,), (3, 1)], (2, 3, 33): [(3, 1), (2, 1, 33)]}
SAME = "the operand before"


def anything(shape, dtype):
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    if dtype.is_floating_point:
        return (torch.randn(shape, dtype=torch.float64) * 3).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape).to(dtype)


def whole_numbers(low, high):
    return lambda shape, dtype: torch.randint(low, high + 1, shape).to(dtype)


def unit(shape, dtype):
    return torch.rand(shape).to(dtype) if dtype.is_floating_point else anything(shape, dtype)


def choice(shape, dtype):
    return torch.rand(shape) > 0.5


divisor, shift, exponent = whole_numbers(1, 5), whole_numbers(0, 3), whole_numbers(0, 3)


def layouts(count: int) -> Iterator[list[Any]]:
    """Shapes for ``count`` operands."""
    yield from ([shape] * count for shape in (*SHAPES, IMAGE))
    for shape in ((), (33,), (3, 5)) if count > 1 else ():
        yield from ([shape, *rest] for rest in itertools.product([shape, SAME], repeat=count - 1) if SAME in rest)
    yield from broadcasts(count)


def broadcasts(count: int) -> Iterator[list[Any]]:
    """One operand is full, the others are of any of the shapes that broadcast to it."""
    for full, others in BROADCASTS.items() if count > 1 else ():
        for position, i in itertools.product(range(count), range(len(others))):
            rest = [others[(i + k) % len(others)] for k in range(count - 1)]
            yield [*rest[:position], full, *rest[position:]]


def large(count: int) -> Iterator[list[Any]]:
    yield [LARGE] * count
    yield from ([*[(1,)] * k, LARGE, *[(1,)] * (count - 1 - k)] for k in range(count) if count > 1)


def operands(makers: list[Any], dtypes: tuple[torch.dtype, ...], shapes: list[Any]) -> list[torch.Tensor] | None:
    """Tensors of the shapes, or None if those that are to be the same are not of one dtype."""
    made: list[torch.Tensor] = []
    for k, shape in enumerate(shapes):
        if shape == SAME:
            wanted = makers[k](made[-1].shape, dtypes[k])
            if wanted.dtype != made[-1].dtype:
                return None
            if makers[k] is not anything:
                made[-1].copy_(wanted)
            made.append(made[-1])
        else:
            t = makers[k](shape, dtypes[k])
            made.append(t.to(memory_format=torch.channels_last) if shape == IMAGE else t)
    return made
