"""A ``.pte`` file: read and checked; written again with all that is no plan or instruction untouched.

Only the program's flatbuffer is written anew. What follows it (weights, delegates' blobs, initial state, named data)
is carried over byte by byte. The extended header behind the flatbuffer's identifier says where that begins.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from planner.pte.flatbuffer import NotAFlatbuffer, decode, encode
from planner.pte.schema import (
    IDENTIFIER,
    DataLocation,
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Null,
    OptionalTensorList,
    Program,
    Tensor,
    TensorList,
)
from solvers.files.text import FileError

LARGEST = 2**48
"""No tensor or arena of a program may be larger, bytes."""

PAGE = 4096
"""Segments keep the alignment that they have, up to this, bytes."""

_HEADER = struct.Struct("<4sIQQQ")
"""Magic, its own length, the program's, where the segments begin, how long they are; bytes, from byte 8 on."""

_MAGIC, _SHORT_HEADER, _HEADER_AT = b"eh00", _HEADER.size - 8, 8
_FLATBUFFER_ALIGNMENT = 16


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
        return _parse(bytes(data))
    except (NotAFlatbuffer, _Invalid) as error:
        raise FileError(f"{name}: no ExecuTorch program that can be read: {error}") from None


class _Invalid(ValueError):
    """Why a program is none."""


def _parse(data: bytes) -> ProgramFile:
    size, base = len(data), 0
    if data[_HEADER_AT : _HEADER_AT + 4] == _MAGIC and len(data) >= _HEADER_AT + _HEADER.size:
        _, length, size, base, segment_bytes = _HEADER.unpack_from(data, _HEADER_AT)
        if length not in (_HEADER.size, _SHORT_HEADER):
            raise _Invalid(f"its header has {length} bytes: that is another version")
        end = max(size, base + (segment_bytes if length == _HEADER.size else 0))
        if end > len(data) or (base and base < size):
            raise _Invalid(f"it should have {end} bytes, but has {len(data)}: it is not whole")
    program = decode(data[:size], Program, IDENTIFIER)
    segments = data[base:] if base else b""
    _check_program(program, len(segments))
    return ProgramFile(program, base, segments)


def to_bytes(file: ProgramFile) -> bytes:
    """The file's bytes.

    The program is laid out anew; the segments follow at the alignment that they had.
    """
    body = encode(file.program, IDENTIFIER)
    if not file.base:
        return body
    room = _up(_HEADER.size, _FLATBUFFER_ALIGNMENT)
    size = room + len(body)
    base = _up(size, math.gcd(file.base, PAGE))
    header = _HEADER.pack(_MAGIC, _HEADER.size, size, base, len(file.segments)).ljust(room, b"\0")
    root = struct.unpack_from("<I", body)[0] + room
    program = struct.pack("<I", root) + body[4:_HEADER_AT] + header + body[_HEADER_AT:]
    return program.ljust(base, b"\0") + file.segments


def _up(n: int, alignment: int) -> int:
    return -(-n // alignment) * alignment


def delegate_blob(file: ProgramFile, plan: ExecutionPlan, index: int) -> bytes:
    """What a delegate was given when it was made."""
    reference = plan.delegates[index].processed
    assert reference is not None  # `_check_plan`
    if reference.location is DataLocation.INLINE:
        return (file.program.backend_delegate_data or ())[reference.index].data or b""
    segment = (file.program.segments or ())[reference.index]
    return file.segments[segment.offset : segment.offset + segment.size]


def _check_program(program: Program, length: int) -> None:
    """Every index in range, every tensor inside its arena, every segment inside the file."""
    segments = program.segments or ()
    for k, s in enumerate(segments):
        if s.offset + s.size > length:
            raise _Invalid(f"segment {k} ends at {s.offset + s.size} of {length} bytes: the file is not whole")
    for part in (program.constant_segment, *(program.mutable_data_segments or ())):
        if part is not None and part.offsets:
            _index(part.segment_index, len(segments), "a constant's segment")
    for data in program.named_data or ():
        _index(data.segment_index, len(segments), f"the segment of {data.key!r}")
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
                if not isinstance(plan.values[i].val, Int | Null):
                    raise _Invalid(f"{where} lists value {i}, which is no integer")
    for i in (*plan.inputs, *plan.outputs):
        _index(i, count, f"an input or output of method {plan.name!r}")
    for k, operator in enumerate(plan.operators):
        if not operator.name:
            raise _Invalid(f"operator {k} of method {plan.name!r} has no name")
    for d in plan.delegates:
        if not d.id or d.processed is None:
            raise _Invalid(f"a delegate of method {plan.name!r} has no id or no data")
        inline = d.processed.location is DataLocation.INLINE
        places = (program.backend_delegate_data if inline else program.segments) or ()
        _index(d.processed.index, len(places), f"the data of delegate {d.id!r}")
    for chain in plan.chains:
        for n, instruction in enumerate(chain.instructions):
            _check_call(instruction.instr_args, plan, len(chain.instructions), f"instruction {n} of {plan.name!r}")


def _check_tensor(t: Tensor, plan: ExecutionPlan, where: str) -> None:
    if any(n < 0 for n in t.sizes) or sorted(t.dim_order) != list(range(len(t.sizes))):
        raise _Invalid(f"{where} has sizes {t.sizes} and dim_order {t.dim_order}")
    if math.prod(t.sizes) > LARGEST:
        raise _Invalid(f"{where} has {math.prod(t.sizes)} elements")
    place = t.allocation_info
    if place is not None:
        _index(place.memory_id, len(plan.non_const_buffer_sizes), f"the memory_id of {where}")
        end = place.memory_offset + math.prod(t.sizes) * t.scalar_type.itemsize
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
