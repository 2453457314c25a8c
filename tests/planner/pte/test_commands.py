"""`arena replan` and `arena show` on programs: what is written, what is said."""

import json
import time

import pytest
import torch
from executorch.exir import to_edge
from executorch.exir.passes.constant_prop_pass import constant_prop_pass
from torch import nn

from planner.cli import main
from planner.executorch.compare import run_program, same_bits
from planner.executorch.example_models import SinCosCat
from tests.planner.executorch.models import Detector
from tests.planner.pte.programs import exported

R = torch.randn


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes(exported(SinCosCat(), (torch.linspace(0, 1, 64),)))
    return path


def test_replan_writes_another_file(model, tmp_path, capsys):
    out, before = tmp_path / "out.pte", model.read_bytes()
    assert main(["replan", str(model), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1,024" in said
    assert "512" in said
    assert "optimal" in said
    assert model.read_bytes() == before
    inputs = (R(64),)
    assert same_bits(*run_program(before, inputs), *run_program(out.read_bytes(), inputs))


def test_replan_never_overwrites_its_input_unless_told_to(model, capsys):
    before = model.read_bytes()
    assert main(["replan", str(model), "-o", str(model)]) == 2
    assert "--in-place-file" in capsys.readouterr().err
    assert model.read_bytes() == before
    assert main(["replan", str(model), "--in-place-file", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["methods"]
    assert (row["before"]["arenas"], row["after"]["arenas"]) == ([0, 1024], [0, 512])
    assert model.read_bytes() != before


def test_show_answers_whether_it_is_needed(model, capsys):
    assert main(["show", str(model)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "arena 1: 1,024 bytes. Not all of it is needed: 512 would do (proven smallest)" in said
    assert "Most is needed in cat_0, instruction 2: 1,024 bytes" in said
    assert main(["replan", str(model), "--in-place-file"]) == 0
    capsys.readouterr()
    assert main(["show", str(model)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "512 bytes. All of it is needed: no plan of this program needs less (proven)." in said


class Classifier(nn.Module):
    """As exported by default, its weights are transposed at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


def test_a_weight_that_is_made_at_run_time_has_a_remedy_that_works(tmp_path, capsys):
    model, inputs = Classifier().eval(), (R(1, 784),)
    path = tmp_path / "model.pte"
    path.write_bytes(exported(model, inputs))
    assert main(["show", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "computed from weights alone, at every run: permute_copy_0 (401,408 bytes" in said
    folded = to_edge(constant_prop_pass(torch.export.export(model, inputs).run_decompositions())).to_executorch()
    (size,) = [n for n in folded.executorch_program.execution_plan[0].non_const_buffer_sizes if n]
    assert f"The load falls from 405,056 to {size:,} bytes" in said


def test_a_concat_of_two_memory_formats_has_a_remedy(tmp_path, capsys):
    def f(x, y):
        return torch.cat([x.sin(), y.sin()], 1).exp()

    from tests.planner.executorch.models import Function

    x = R(1, 4, 8, 8)
    path = tmp_path / "model.pte"
    path.write_bytes(exported(Function(f), (x, x.to(memory_format=torch.channels_last))))
    assert main(["show", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "mixed dim_order" in said
    assert "Use one memory format" in said


def test_inputs_in_the_arena_have_a_remedy(model, tmp_path, capsys):
    path = tmp_path / "detector.pte"
    path.write_bytes(exported(nn.Sequential(nn.MaxPool1d(4), nn.Flatten()), (R(1, 1, 1000),)))
    assert main(["show", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "inputs in the arena: input_0 (4,000 bytes" in said
    assert "`alloc_graph_input=False`" in said


@pytest.mark.parametrize("suffix", ["svg", "html", "png"])
def test_a_program_is_drawn(model, tmp_path, suffix):
    out = tmp_path / f"map.{suffix}"
    assert main(["show", str(model), "-o", str(out)]) == 0
    data = out.read_bytes()
    assert {"svg": b"<svg", "html": b"<!doctype html", "png": b"PNG"}[suffix] in data[:400].lower() or b"PNG" in data[
        :8
    ]


def test_show_is_quick_on_hundreds_of_tensors(tmp_path, capsys):
    """Three seconds are promised after imports; here with room for a busy machine."""
    path = tmp_path / "gru.pte"
    path.write_bytes(exported(nn.GRU(8, 8, 1, bidirectional=True), (R(12, 1, 8),)))
    started = time.monotonic()
    assert main(["show", str(path)]) == 0
    assert time.monotonic() - started < 10
    assert "arena 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["replan", "model.pte"],
        ["replan", "model.pte", "-o", "out.txt"],
        ["replan", "none.pte", "-o", "out.pte"],
        ["replan", "model.pte", "-o", "none/out.pte"],
        ["replan", "model.pte", "-o", "out.pte", "--in-place-file"],
        ["replan", "model.pte", "-o", "out.pte", "--min-part-alignment", "0"],
        ["show", "model.pte", "--plan", "plan.json"],
        ["show", "model.pte", "-o", "map.txt"],
        ["show", "none.pte"],
    ],
)
def test_bad_usage(arguments, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.strip()
    assert [p.name for p in tmp_path.iterdir()] == ["model.pte"]


def test_a_detector_is_explained(tmp_path, capsys):
    path = tmp_path / "detector.pte"
    path.write_bytes(exported(Detector(), (R(1, 3, 64, 64),)))
    assert main(["show", str(path), "--all"]) == 0
    assert "147,456 would do (proven smallest)" in " ".join(capsys.readouterr().out.split())
