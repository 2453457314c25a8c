"""The schema of a ``.pte`` is the wheel's; what is read and written by it is what executorch reads and writes."""

import dataclasses
import math
import struct
import subprocess
import sys

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program
from executorch.exir.tensor import enum_to_scalar_map
from hypothesis import given
from hypothesis import strategies as st

from planner.executorch.example_models import SinCosCat, UNet
from planner.pte import operators, schema
from planner.pte.flatbuffer import NotAFlatbuffer, decode, encode, slots_of
from planner.pte.program_file import parse_pte, to_bytes
from tests.planner.executorch.models import Accumulator, TwoConvolutions
from tests.planner.pte.programs import exported
from tests.planner.pte.wheel_schema import wheel_schema

R = torch.randn
LETTERS = {
    **dict.fromkeys(("byte", "int8"), "b"),
    **dict.fromkeys(("ubyte", "uint8"), "B"),
    **dict.fromkeys(("int", "int32"), "i"),
    **dict.fromkeys(("uint", "uint32"), "I"),
    **dict.fromkeys(("long", "int64"), "q"),
    **dict.fromkeys(("ulong", "uint64"), "Q"),
    "double": "d",
    "bool": "?",
}
WHEEL = wheel_schema()


def kind_of(slot):
    """A slot in the words of the FlatBuffers language, with LETTERS for scalars."""
    if slot.kind in ("table", "tables"):
        name = slot.tables[0].__name__
        return name if slot.kind == "table" else f"[{name}]"
    if slot.kind == "union":
        (union,) = (n for n, members in WHEEL.unions.items() if members == [t.__name__ for t in slot.tables])
        return union
    if slot.kind == "scalar":
        return slot.enum.__name__ if slot.enum else slot.letter
    return {"string": "string", "bytes": "[B]", "scalars": f"[{slot.letter}]"}[slot.kind]


def in_letters(kind):
    """A type of the FlatBuffers language, with LETTERS for scalars."""
    return f"[{in_letters(kind[1:-1])}]" if kind[0] == "[" else LETTERS.get(kind, kind)


def test_every_table_is_the_wheels():
    assert WHEEL.identifier == schema.IDENTIFIER
    for name, fields in WHEEL.tables.items():
        table = getattr(schema, name)
        assert [(s.name, kind_of(s)) for s in slots_of(table)] == [(f, in_letters(kind)) for f, kind, _ in fields]
        for s, (_, _, attributes) in zip(slots_of(table), fields, strict=True):
            if "force_align" in attributes:
                assert f"force_align: {s.alignment}" in attributes
            elif attributes:
                assert attributes.removeprefix("= ") in ("0", "CPU")  # the defaults of scalars are all zero
                assert int(s.absent) == 0


def test_every_enum_is_the_wheels():
    for name, (kind, values) in WHEEL.enums.items():
        assert LETTERS[kind] == "b"
        ours = {m.name: m.value for m in getattr(schema, name)}
        if name != "ScalarType":
            assert ours == values
    for number, dtype in enum_to_scalar_map.items():
        ours = schema.ScalarType(int(number))
        assert (ours.dtype, ours.itemsize) == (str(dtype).removeprefix("torch."), dtype.itemsize)


@pytest.mark.parametrize(
    ("model", "inputs", "partitioner"),
    [
        (SinCosCat(), (R(64),), None),
        (UNet(), (R(1, 3, 16, 16),), None),
        (TwoConvolutions(), (R(1, 3, 8, 8),), [XnnpackPartitioner()]),
        (Accumulator(), (R(4),), None),
    ],
    ids=["no segments", "weights", "a delegate", "state"],
)
def test_executorch_reads_the_same_from_what_is_written(model, inputs, partitioner):
    before = exported(model, inputs, partitioner=partitioner)
    after = to_bytes(parse_pte(before, "x"))
    one, other = (_flatbuffer_to_program(b[: flatbuffer_size(b)]) for b in (before, after))
    assert one == other


def flatbuffer_size(pte):
    return struct.unpack_from("<Q", pte, 16)[0] if pte[8:12] == b"eh00" else len(pte)


def values(kind):
    """A strategy for a dataclass of the schema."""

    def of(slot):
        if slot.kind == "scalar":
            return st.sampled_from(list(slot.enum)) if slot.enum else scalar(slot.letter)
        if slot.kind == "scalars":
            return st.lists(scalar(slot.letter), max_size=3)
        if slot.kind == "bytes":
            return st.none() | st.binary(max_size=40)
        if slot.kind == "string":
            return st.text(max_size=5) if slot.absent == "" else st.none() | st.text(max_size=5)
        if slot.kind == "tables":
            return st.lists(values(slot.tables[0]), max_size=2)
        return st.none() | st.one_of(*map(values, slot.tables))

    return st.deferred(lambda: st.builds(kind, *map(of, slots_of(kind))))


def scalar(letter):
    if letter in "?d":
        return st.booleans() if letter == "?" else st.floats(allow_nan=False)
    bits = 8 * struct.calcsize("<" + letter)
    return st.integers(0, 2**bits - 1) if letter.isupper() else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@given(values(schema.ExecutionPlan) | values(schema.Program))
def test_what_is_written_is_read(value):
    data = encode(value, "ET12")
    assert decode(data, type(value), "ET12") == value
    assert encode(decode(data, type(value), "ET12"), "ET12") == data


@given(st.data())
def test_data_lies_at_its_alignment(data):
    blobs = data.draw(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4))
    program = schema.Program(constant_buffer=[schema.Buffer(b"@" + b) for b in blobs])
    written = encode(program, "ET12")
    assert len(written) % 16 == 0
    assert all(any(written[k : k + 1 + len(b)] == b"@" + b for k in range(0, len(written), 16)) for b in blobs)


@given(st.binary(max_size=200), st.sampled_from([8, 16, 24, 48]))
def test_any_bytes_are_read_or_refused(data, root):
    try:
        found = decode(struct.pack("<I4s", root, b"ET12") + data, schema.Program, "ET12")
    except NotAFlatbuffer:
        return
    assert decode(encode(found, "ET12"), schema.Program, "ET12") == found


def test_what_is_not_a_number_survives():
    plan = schema.ExecutionPlan(values=[schema.EValue(schema.Double(x)) for x in (math.nan, math.inf, -math.inf)])
    back = decode(encode(plan, "ET12"), schema.ExecutionPlan, "ET12")
    nan, inf, minus = (v.val.double_val for v in back.values)
    assert math.isnan(nan)
    assert (inf, minus) == (math.inf, -math.inf)
    assert encode(back, "ET12") == encode(plan, "ET12")


def test_every_public_table_is_a_dataclass_with_defaults():
    assert all(dataclasses.is_dataclass(getattr(schema, name)) and getattr(schema, name)() for name in WHEEL.tables)


def test_the_table_of_operators_is_what_torch_and_executorch_say():
    """``python -m planner.executorch.operator_table`` writes it again."""
    code = "from planner.executorch.operator_table import operator_table; print(operator_table())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    table = dict(line.split(" ", 1) for line in run.stdout.split("\n") if line)  # of a process that imports no more
    assert operators._table() == table
    assert operators.signature_of("mine::relu.out") is None
