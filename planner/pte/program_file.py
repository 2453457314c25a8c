"""A ``.pte`` file: read and checked; written again with all that is no plan or instruction untouched.

Only the program's flatbuffer is written anew. What follows it (weights, delegates' blobs, initial state, named data)
is carried over byte by byte.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
from dataclasses import dataclass
from pathlib import Path

from executorch.exir._serialize import _program as serializer
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program, _program_to_flatbuffer
from executorch.exir._serialize.padding import aligned_size, pad_to
from executorch.exir.schema import (
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    OptionalTensorList,
    Program,
    Tensor,
    TensorList,
)
from executorch.exir.tensor import get_scalar_type

from planner.files.text import FileError
from planner.pte.flatbuffer import NotAFlatbuffer, Schema, check, parse_schema

LARGEST = 2**48
"""No tensor or arena of a program may be larger, bytes."""

PAGE = 4096
"""Segments keep the alignment that they have, up to this, bytes."""


@dataclass(frozen=True)
class ProgramFile:
    """A program; and the bytes behind it, ``base`` from the file's start (0 if there are none)."""

    program: Program
    base: int
    segments: bytes


def read_pte(path: str) -> ProgramFile:
    """Read a ``.pte`` file.

    Parameters
    ----------
    path : str

    Raises
    ------
    FileError
        If it cannot be read, or is no whole program of a version that is known.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse_pte(data, path)


def parse_pte(data: bytes, name: str) -> ProgramFile:
    """The same, from the file's bytes; ``name`` is for messages."""
    try:
        return _parse(data)
    except (NotAFlatbuffer, _Invalid) as error:
        raise FileError(f"{name}: no ExecuTorch program that can be read: {error}") from None


class _Invalid(ValueError):
    """Why a program is none."""


def _parse(data: bytes) -> ProgramFile:
    header = serializer._get_extended_header(data)
    size, base = len(data), 0
    if header is not None:
        if header.length != header.EXPECTED_LENGTH and header.length != header.MINIMUM_LENGTH:
            raise _Invalid(f"its header has {header.length} bytes: that is another version")
        size, base = header.program_size, header.segment_base_offset
        end = max(size, base + header.segment_data_size)
        if end > len(data) or (base and base < size):
            raise _Invalid(f"it should have {end} bytes, but has {len(data)}: it is not whole")
    check(data[:size], _schema())
    try:
        program = _flatbuffer_to_program(data[:size])
    except Exception as error:  # the reader promises nothing for bytes that no exporter wrote
        raise _Invalid(f"a value in it is not known: {error}") from None
    segments = data[base:] if base else b""
    _check_program(program, len(segments))
    return ProgramFile(program, base, segments)


@functools.cache
def _schema() -> Schema:
    folder = importlib.resources.files("executorch.exir._serialize")
    return parse_schema(*((folder / name).read_text() for name in ("scalar_type.fbs", "program.fbs")))


def to_bytes(file: ProgramFile) -> bytes:
    """The file's bytes.

    The program is laid out anew; the segments follow at the alignment that they had.
    """
    body = _program_to_flatbuffer(file.program)
    if not file.base:
        return bytes(body.data)
    header_size = aligned_size(serializer._ExtendedHeader.EXPECTED_LENGTH, body.max_alignment)
    size = header_size + len(body.data)
    base = aligned_size(size, math.gcd(file.base, PAGE))
    header = serializer._ExtendedHeader(
        program_size=size, segment_base_offset=base, segment_data_size=len(file.segments)
    )
    program = serializer._insert_flatbuffer_header(
        bytes(body.data), r"ET[0-9a-zA-Z][0-9a-zA-Z]", pad_to(header.to_bytes(), header_size)
    )
    return bytes(pad_to(program, base)) + file.segments


def delegate_blob(file: ProgramFile, plan: ExecutionPlan, index: int) -> bytes:
    """What a delegate was given when it was made."""
    reference = plan.delegates[index].processed
    if reference.location == 0:
        return bytes(file.program.backend_delegate_data[reference.index].data)
    segment = file.program.segments[reference.index]
    return file.segments[segment.offset : segment.offset + segment.size]


def _check_program(program: Program, length: int) -> None:
    """Every index in range, every tensor inside its arena, every segment inside the file."""
    for k, s in enumerate(program.segments):
        if s.offset + s.size > length:
            raise _Invalid(f"segment {k} ends at {s.offset + s.size} of {length} bytes: the file is not whole")
    for part in (program.constant_segment, *(program.mutable_data_segments or ())):
        if part is not None and part.offsets:
            _index(part.segment_index, len(program.segments), "a constant's segment")
    for data in program.named_data or ():
        _index(data.segment_index, len(program.segments), f"the segment of {data.key!r}")
    if not program.execution_plan:
        raise _Invalid("it has no method")
    for plan in program.execution_plan:
        _check_plan(program, plan)


def _check_plan(program: Program, plan: ExecutionPlan) -> None:
    count = len(plan.values)
    for k, value in enumerate(plan.values):
        where = f"value {k} of method {plan.name!r}"
        if value.val is None:
            raise _Invalid(f"{where} is nothing")
        if isinstance(value.val, Tensor):
            _check_tensor(value.val, plan, where)
        elif isinstance(value.val, TensorList | OptionalTensorList):
            for i in value.val.items:
                if not (i == -1 and isinstance(value.val, OptionalTensorList)):
                    _index(i, count, where)
                    if not isinstance(plan.values[i].val, Tensor):
                        raise _Invalid(f"{where} lists value {i}, which is no tensor")
        elif isinstance(value.val, IntList):
            for i in value.val.items:
                _index(i, count, where)
    for i in (*plan.inputs, *plan.outputs):
        _index(i, count, f"an input or output of method {plan.name!r}")
    for d in plan.delegates:
        inline = d.processed.location == 0
        places = program.backend_delegate_data if inline else program.segments
        _index(d.processed.index, len(places), f"the data of delegate {d.id!r}")
    for chain in plan.chains:
        for n, instruction in enumerate(chain.instructions):
            _check_call(instruction.instr_args, plan, len(chain.instructions), f"instruction {n} of {plan.name!r}")


def _check_tensor(t: Tensor, plan: ExecutionPlan, where: str) -> None:
    if any(n < 0 for n in t.sizes) or sorted(t.dim_order) != list(range(len(t.sizes))):
        raise _Invalid(f"{where} has sizes {t.sizes} and dim_order {list(t.dim_order)}")
    if math.prod(t.sizes) > LARGEST:
        raise _Invalid(f"{where} has {math.prod(t.sizes)} elements")
    try:
        itemsize = get_scalar_type(t.scalar_type).itemsize
    except Exception as error:
        raise _Invalid(f"{where} is of type {t.scalar_type!r}, which has no dtype") from error
    place = t.allocation_info
    if place is not None:
        _index(place.memory_id, len(plan.non_const_buffer_sizes), f"the memory_id of {where}")
        end = place.memory_offset + math.prod(t.sizes) * itemsize
        if place.memory_id < 1 or end > plan.non_const_buffer_sizes[place.memory_id]:
            raise _Invalid(f"{where} ends at {end}, outside its arena {place.memory_id}")


def _check_call(call: object, plan: ExecutionPlan, instructions: int, where: str) -> None:
    count = len(plan.values)
    if isinstance(call, KernelCall | DelegateCall):
        for i in call.args:
            _index(i, count, f"an argument of {where}")
        if isinstance(call, KernelCall):
            _index(call.op_index, len(plan.operators), f"the operator of {where}")
        else:
            _index(call.delegate_index, len(plan.delegates), f"the delegate of {where}")
    elif isinstance(call, MoveCall):
        _index(call.move_from, count, where)
        _index(call.move_to, count, where)
    elif isinstance(call, JumpFalseCall):
        _index(call.cond_value_index, count, where)
        _index(call.destination_instruction, instructions + 1, where)
    elif isinstance(call, FreeCall):
        _index(call.value_index, count, where)
    else:
        raise _Invalid(f"{where} is nothing")


def _index(i: int, count: int, what: str) -> None:
    if not 0 <= i < count:
        raise _Invalid(f"{what} is {i}: there are {count}")
