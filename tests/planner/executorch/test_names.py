"""Names: placeholders and fully qualified names live in different spaces, and may look alike."""

import copy
import warnings

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge

from planner.api import PlanningError
from planner.executorch import ArenaWarning, arena_planning_pass, graph_flow
from planner.executorch.compare import facts_of, lower, to_program
from planner.judge import moves
from tests.planner.executorch.models import Function
from tests.planner.executorch.running import run_both

R, cat = torch.randn, torch.cat


class Named(torch.nn.Module):
    """A buffer ``state``, here or in a layer."""

    def __init__(self, shape=(8,)):
        super().__init__()
        self.register_buffer("state", torch.zeros(shape))


class Sets(Named):
    def forward(self, state):
        old = self.state * 1
        self.state.copy_(state)
        return old


class SetsAComputedValue(Named):
    def forward(self, state):
        old = self.state + 0.5
        self.state.copy_(cat([state[4:], state[:4]]).sin())
        return old, old * state


class SetsABroadcast(Named):
    def __init__(self):
        super().__init__((2, 8))

    def forward(self, state):
        old = self.state * 1
        self.state.copy_(state)
        return old


class Nested(torch.nn.Module):
    """``layer.state`` beside an input ``state`` and one that is called as the placeholder would be."""

    def __init__(self):
        super().__init__()
        self.layer = Named()

    def forward(self, state, b_layer_state):
        old = self.layer.state * b_layer_state
        self.layer.state.copy_(state)
        return old


class BesideItsPlaceholder(Named):
    def forward(self, b_state, state):
        old = self.state * b_state
        self.state.copy_(state * 2)
        return old


class Two(torch.nn.Module):
    """Two buffers, each set from the input that has the other's name."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(8))
        self.register_buffer("b", torch.zeros(8))

    def forward(self, a, b):
        old = self.a - self.b
        self.a.copy_(b)
        self.b.copy_(a)
        return old


class BesideALiftedConstant(Named):
    def forward(self, c_lifted_tensor_0, state):
        old = self.state * torch.tensor([1.5, 2.0] * 4) + c_lifted_tensor_0
        self.state.copy_(state)
        return old


class OntoItself(Named):
    def forward(self, x):
        self.state.add_(x)
        self.state.copy_(self.state)
        return self.state * 2


CLASHES = (Sets, SetsAComputedValue, SetsABroadcast, BesideItsPlaceholder, Two, BesideALiftedConstant)


@pytest.mark.parametrize("model", [*CLASHES, Nested, OntoItself], ids=lambda m: m.__name__)
@pytest.mark.parametrize("arguments", [{}, {"move_write_backs": False}, {"share_mutable_buffers": True}], ids=str)
def test_a_buffer_gets_its_new_value_whatever_the_inputs_are_called(model, arguments):
    count = len(torch.export.export(model(), _inputs(model)).graph_signature.user_inputs)
    runs = [tuple(R(8) for _ in range(count)) for _ in range(4)]
    _, _, report = run_both(model(), *runs, stock_is_wrong=model in CLASHES, **arguments)
    assert bool(report.mended) == (model in CLASHES)
    assert all(name in str(report) for name in report.mended)


def _inputs(model):
    parameters = model.forward.__code__.co_argcount - 1
    return tuple(R(8) for _ in range(parameters))


class ManyWays(Named):
    """ExecuTorch's own example of several methods on one state."""

    def forward(self, x):
        return self.state.add_(x).view(-1) * 2

    def set_state(self, state):
        self.state.copy_(state)

    def get_state(self):
        return self.state * 1


def test_several_methods_on_one_state():
    model, methods = ManyWays(), {}
    for name, inputs in (("forward", (R(8),)), ("set_state", (R(8),)), ("get_state", ())):
        one = copy.deepcopy(model)
        one.forward = getattr(one, name)
        methods[name] = torch.export.export(one, inputs)
    planning_pass = arena_planning_pass(strict=True, share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning_pass, emit_mutable_buffer_names=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = to_edge(methods).to_executorch(config)
    assert [m for r in planning_pass.reports for m in r.mended] == ["state"]
    (plan,) = (p for p in program.executorch_program.execution_plan if p.name == "set_state")
    (call,) = (i.instr_args for i in plan.chains[0].instructions)
    written = plan.values[call.args[0]].val
    assert written.extra_tensor_info.fully_qualified_name == "state"
    assert written.allocation_info.memory_id == 2  # where all methods have it


def test_what_the_judge_cannot_handle_is_its_refusal(monkeypatch):
    def broken(*_):
        raise IndexError("list index out of range")

    def model(x):
        return cat([x.sin(), x.cos()]).sigmoid()

    edge = lower(Function(model), (R(8),))
    stock = to_program(edge)
    monkeypatch.setattr(moves, "concatenated", broken)
    with pytest.warns(ArenaWarning, match=r"op 'aten_cat_default' cannot be judged: IndexError"):
        ours = to_program(edge, planning_pass := arena_planning_pass())
    assert facts_of(ours) == facts_of(stock)
    assert "cannot be judged" in str(planning_pass.reports[0])
    with pytest.raises(PlanningError, match=r"op 'aten_cat_default' cannot be judged"):
        to_program(edge, arena_planning_pass(strict=True))


def test_what_the_front_end_cannot_read_is_refused(monkeypatch):
    def broken(self, node, op):
        raise KeyError(node.name)

    monkeypatch.setattr(graph_flow._Reader, "_view", broken)
    edge = lower(Function(lambda x: x.sin()[2:]), (R(8),))
    with pytest.warns(ArenaWarning, match=r"op 'aten_\w+' cannot be read: KeyError"):
        program = to_program(edge, planning_pass := arena_planning_pass())
    assert planning_pass.reports[0].arenas == ()
    assert facts_of(program) == facts_of(to_program(edge))
