"""Files in and out: all but the program's plan survives; broken and foreign files are refused in one sentence."""

import random
import struct
import tracemalloc

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

from planner.cli import main
from planner.executorch.compare import run_program, same_bits
from planner.executorch.example_models import SinCosCat, UNet
from planner.program.tensor_layout import TensorLayout
from planner.program.views import copied_by
from planner.pte.peaks import show
from planner.pte.program_file import parse_pte, to_bytes
from planner.pte.replanning import replan
from planner.pte.schema import DoubleList, EValue, Int, IntList, Null, String, Tensor, TensorList
from solvers.files.text import FileError
from tests.planner.executorch.models import Accumulator, Function, TwoConvolutions
from tests.planner.pte.programs import exported, request

R = torch.randn


@pytest.fixture(scope="module")
def programs():
    """A program without segments, with weights, with a delegate, with state."""
    image = (R(1, 3, 8, 8),)
    return [
        exported(SinCosCat(), (R(64),)),
        exported(UNet(), (R(1, 3, 16, 16),)),
        exported(TwoConvolutions(), image, partitioner=[XnnpackPartitioner()]),
        exported(Accumulator(), (R(4),)),
    ]


def test_a_program_survives_being_written(programs):
    for pte in programs:
        file = parse_pte(pte, "x")
        again = parse_pte(to_bytes(file), "y")
        assert again.program == file.program
        assert again.segments == file.segments
        assert again.base % 16 == 0


def test_segments_keep_their_alignment(programs):
    file = parse_pte(programs[1], "x")
    written = parse_pte(to_bytes(file), "y")
    for s in file.program.segments:
        before, after = file.base + s.offset, written.base + s.offset
        assert after % min(128, before & -before) == 0


def test_a_written_program_runs(programs):
    inputs = (R(1, 3, 16, 16),)
    data = to_bytes(parse_pte(programs[1], "x"))
    assert same_bits(*run_program(programs[1], inputs), *run_program(data, inputs))


FOREIGN = [
    *(b"", b"ET12", b"\x00" * 64, b"PK\x03\x04" + b"\x00" * 100, b"\x7fELF" + b"\x01" * 200),
    *(b"%PDF-1.7\n" * 20, b'{"format": "arena-problem"}', b"\xff" * 1000),
    struct.pack("<I4s", 8, b"ET12") + b"\x00" * 60,
    struct.pack("<I4s", 2**31, b"ET12") + b"\x00" * 60,
    struct.pack("<I4s", 48, b"ET99") + b"\x00" * 60,
]


def broken(programs, seed):
    """A truncated, bit-flipped or foreign file; and whether it cannot but be refused."""
    draw = random.Random(seed)
    pte = bytearray(draw.choice(programs))
    kind = seed % 4
    if kind == 0:
        return bytes(pte[: draw.randrange(len(pte) - 16)]), True
    if kind == 1:
        return FOREIGN[seed // 4 % len(FOREIGN)], True
    size = struct.unpack_from("<Q", pte, 16)[0] if pte[8:12] == b"eh00" else len(pte)
    for _ in range(draw.choice((1, 1, 3, 20))):
        pte[draw.randrange(size)] ^= 1 << draw.randrange(8)
    if kind == 3:
        at = draw.randrange(size - 4)
        pte[at : at + 4] = draw.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"))
    return bytes(pte), False


@pytest.mark.parametrize("command", ["replan", "show"])
def test_broken_files_end_in_one_sentence(programs, command, tmp_path, capsys):
    """A flipped bit may leave a program that is whole, another one; then a judged program comes out."""
    path, out = tmp_path / "model.pte", tmp_path / "out.pte"
    refused = 0
    for seed in range(200):
        data, must = broken(programs, seed)
        path.write_bytes(data)
        rest = ["-o", str(out)] if command == "replan" else []
        code = main([command, str(path), "--time-limit", "0.2", *rest])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert code in ((2,) if must else (0, 2)), seed
        if code == 2:
            refused += 1
            assert said.out == ""
            assert len(said.err.strip().splitlines()) == 1, said.err
            assert str(path) in said.err
            assert not out.exists()
        out.unlink(missing_ok=True)
        assert path.read_bytes() == data
    assert refused >= 120


def test_what_a_newer_version_wrote_is_refused(programs):
    """A field that is not known would be lost: here a Program's vtable has one more."""
    pte = bytearray(programs[0])
    root = struct.unpack_from("<I", pte, 0)[0]
    vtable = root - struct.unpack_from("<i", pte, root)[0]
    length = struct.unpack_from("<H", pte, vtable)[0]
    slots = 8  # fields of a Program
    moved = bytes(pte[vtable : vtable + length]).ljust(4 + 2 * slots, b"\x00") + struct.pack("<H", 4)
    moved = struct.pack("<H", len(moved)) + moved[2:]
    at = len(pte)
    pte += moved + b"\x00" * (-len(moved) % 8)
    struct.pack_into("<i", pte, root, root - at)
    with pytest.raises(FileError, match="fields that this version of arena-planner does not know"):
        parse_pte(bytes(pte), "newer")


def test_a_tensor_outside_its_arena_is_refused(programs):
    file = parse_pte(programs[0], "x")
    file.program.execution_plan[0].non_const_buffer_sizes[1] -= 1
    with pytest.raises(FileError, match="outside its arena 1"):
        parse_pte(to_bytes(file), "x")


def test_a_list_of_lists_is_refused(programs):
    """Sixty lists, each of the one before twice, would be 2^60 numbers; one of itself has no end."""
    for last in (1, 60):
        file = parse_pte(programs[0], "x")
        values = file.program.execution_plan[0].values
        n = len(values)
        values += [EValue(IntList([n + k - 1 if k else n, n + k - 1 if k else n])) for k in range(last)]
        with pytest.raises(FileError, match=f"value {n} of method 'forward' lists value {n}, which is no integer"):
            parse_pte(to_bytes(file), "x")
        values[n].val = Int(0)
        if last > 1:
            with pytest.raises(FileError, match=f"lists value {n + 1}, which is no integer"):
                parse_pte(to_bytes(file), "x")


@pytest.mark.parametrize("wrong", [Int(3), Null(), DoubleList([0.5]), String("x"), IntList([])])
def test_arguments_of_another_kind_are_said_with_the_op(wrong):
    """A whole file in which an argument is not what the operator takes: both commands leave it alone and say where."""

    def f(x):
        return torch.cat([x, x.permute(1, 0)], 1).unbind(0)[0].view(2, 4) + x[1:3].squeeze(0)[0]

    pte = exported(Function(f), (R(4, 4),))
    for at, value in enumerate(parse_pte(pte, "x").program.execution_plan[0].values):
        if isinstance(value.val, Tensor | TensorList):
            continue
        file = parse_pte(pte, "x")
        (plan,) = file.program.execution_plan
        plan.values[at].val = wrong
        try:
            file = parse_pte(to_bytes(file), "x")
        except FileError:
            continue  # an integer of a list
        _, (report,) = replan(file, request())
        (shown,) = show(file, request().options)
        assert shown.kept in ("", report.kept)
        assert ("cannot be judged" in shown.kept) == ("cannot be judged" in report.kept)


@pytest.mark.parametrize("extent", [2**20, 2**31 - 1])
def test_a_split_into_more_than_there_is_costs_no_memory(extent):
    layout = TensorLayout("float32", 4, (extent,), (0,))
    one = TensorLayout("float32", 4, (), ())
    tracemalloc.start()
    for name, given in (("aten::unbind_copy.int_out", ["x", 0]), ("aten::split_copy.Tensor_out", ["x", 1, 0])):
        assert copied_by(name, given, lambda _: [layout], [one]) is None
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
