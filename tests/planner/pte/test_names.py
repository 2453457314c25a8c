"""Names in a .pte: of inputs, buffers, operators; and what cannot be read is left alone, and named."""

import warnings

import torch
from executorch.exir import to_edge

from planner.cli import main
from planner.pte import method
from planner.pte.method import Method
from planner.pte.program_file import parse_pte
from planner.pte.replanning import replan
from tests.planner.executorch.models import Function
from tests.planner.executorch.test_names import Named
from tests.planner.pte.programs import check_replan, exported, request
from tests.without import run_without

R = torch.randn


class Sets(Named):
    def forward(self, state):
        old = torch.cat([self.state.sin(), state.cos()])
        self.state.copy_(state)
        return old.exp()


def stock_program(model, inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(to_edge(torch.export.export(model, inputs)).to_executorch().buffer)


def test_an_input_named_like_the_buffer_that_it_sets():
    """Stock's program copies the input onto itself: it is replanned to one that does the same."""
    runs = [(R(8),) for _ in range(3)]
    report = check_replan(stock_program(Sets(), runs[0]), *runs)
    assert report.plan is not None
    assert report.after.total < report.before.total


def test_an_operator_called_input_is_not_taken_for_an_input():
    file = parse_pte(exported(Function(lambda x: x.sin().cos()), (R(8),)), "x")
    plan = file.program.execution_plan[0]
    for op in plan.operators:
        op.name = op.name.replace("aten::sin", "mine::input").replace("aten::cos", "mine::state")
    made = Method(file, plan)
    assert len(set(made.labels.values())) == len(made.labels)
    assert not set(made.names.values()) & {made.labels[i] for i in plan.inputs if i in made.layouts}


def test_what_cannot_be_read_is_left_alone_and_named(monkeypatch, tmp_path, capsys):
    def broken(*_):
        raise IndexError("list index out of range")

    pte = exported(Function(lambda x: torch.cat([x.sin(), x.cos()])), (R(8),))
    path = tmp_path / "model.pte"
    path.write_bytes(pte)
    for where, said in ((method.Reader, "instruction 0 cannot be read: IndexError"), (Method, "it cannot be read")):
        with monkeypatch.context() as patch:
            patch.setattr(where, "_kernel" if where is method.Reader else "_state", broken)
            made, (report,) = replan(parse_pte(pte, "x"), request())
            assert said in report.kept
            assert made.program == parse_pte(pte, "x").program
            assert main(["show", str(path)]) == 0
            assert said in capsys.readouterr().err


def test_the_commands_need_neither_torch_nor_executorch(tmp_path):
    path, out = tmp_path / "model.pte", tmp_path / "out.pte"
    path.write_bytes(exported(Function(lambda x: torch.cat([x.sin(), x.cos()]).sigmoid()), (R(64),)))
    away = ("torch", "torchao", "executorch", "matplotlib")
    shown = run_without(away, ["show", str(path)])
    assert "512 would do" in shown.stdout
    replanned = run_without(away, ["replan", str(path), "-o", str(out)])
    assert "optimal" in replanned.stdout
    assert (shown.stderr, replanned.stderr) == ("", "")
    drawn = run_without(away, ["show", str(path), "-o", str(tmp_path / "map.svg")])
    assert drawn.stderr == ""
