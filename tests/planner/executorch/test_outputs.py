"""What outputs and inputs may share, and what stays intact from one execution to the next."""

import pytest
import torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load

from planner.executorch import arena_planning_pass
from planner.executorch.compare import lower, near, run_program, same_bits, to_program
from planner.program.share_rules import Share
from tests.planner.executorch.models import Function
from tests.planner.executorch.running import run_both

R = torch.randn
INPUTS = R(64), R(64)


def feedback(x, y):
    return (x + y).relu(), (x * 2 - y).abs()


@pytest.fixture
def loaded():
    """Load a planned function; the runtime does not keep the program's bytes alive."""
    kept = []

    def load_it(function, inputs, **arguments):
        planning_pass = arena_planning_pass(strict=True, **arguments)
        kept.append(to_program(lower(Function(function), inputs), planning_pass).buffer)
        return load(kept[-1]), planning_pass.reports[0]

    return load_it


def storages(outputs):
    return [range(t.data_ptr(), t.data_ptr() + t.nbytes) for t in outputs]


def overlap(one, other):
    return max(one.start, other.start) < min(one.stop, other.stop)


ALIASING = {
    "whole and part": lambda x, y: (lambda a: (torch.cat([a, y.cos()]), a))(x.sin()),
    "two slices": lambda x, y: (lambda a: (a[:40], a[20:]))(x.sin()),
    "a slice of an output": lambda x, y: (lambda a: (a, a[20:]))(x.sin()),
}


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("name", ALIASING)
def test_outputs_alias_only_where_allowed(loaded, name, allowed):
    module, _ = loaded(ALIASING[name], INPUTS, alias_outputs=allowed)
    outputs = module.run_method("forward", INPUTS, clone_outputs=False)
    a, b = storages(outputs)
    assert overlap(a, b) == allowed
    assert near(outputs, ALIASING[name](*INPUTS))
    untouched = outputs[1].clone()
    outputs[0].fill_(7)
    assert same_bits([outputs[1]], [untouched]) != allowed


@pytest.mark.parametrize("allowed", [False, True])
def test_an_output_shows_an_input_only_where_allowed(allowed):
    _, ours, report = run_both(lambda x: x[16:48], (R(64),), (R(64),), alias_outputs=allowed)
    assert report.of(Share.VIEW)[0].elided == allowed
    assert ours.instructions == (0 if allowed else 1)


@pytest.mark.parametrize("preserve", [False, True])
def test_inputs_are_preserved_only_on_demand(loaded, preserve):
    """The second execution is not given its inputs again."""
    module, _ = loaded(feedback, INPUTS, preserve_inputs=preserve)
    first = [t.clone() for t in module.run_method("forward", INPUTS)]
    assert same_bits(first, module.plan_execute("forward")) == preserve


@pytest.mark.parametrize("safe", [False, True])
def test_outputs_may_be_fed_back_only_on_demand(loaded, safe):
    """Each execution is given the outputs of the last, where they lie in the arena."""
    module, report = loaded(feedback, INPUTS, feedback_safe=safe, alias_outputs=True)
    values, wanted = INPUTS, INPUTS
    right = []
    for _ in range(4):
        values = tuple(module.run_method("forward", values, clone_outputs=False))
        wanted = feedback(*wanted)
        right.append(near(values, wanted))
    assert all(right) == safe
    assert report.status == "optimal"


@pytest.mark.parametrize(
    "function",
    [lambda x: x, lambda x: (x, x), lambda x: (x.sin(), x), lambda x: (lambda a: (a, a))(x.sin())],
    ids=["an input", "an input twice", "an input and more", "an output twice"],
)
def test_odd_outputs(function):
    run_both(function, (R(8),), (R(8),))


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: x.shape[0], (R(4),)),
        (lambda x: (x.shape[0], 7), (R(4),)),
        (lambda n: n + 1, (3,)),
        (lambda n: 7, (3,)),
    ],
    ids=["a size", "two numbers", "a number of a number", "a constant"],
)
def test_programs_without_tensors(function, inputs):
    """Stock's own check stumbles over them (pytorch/executorch#22477, #22479); nothing is there to be planned."""
    planning_pass = arena_planning_pass(strict=True)
    program = to_program(lower(Function(function), inputs), planning_pass)
    wanted = function(*inputs)
    assert run_program(program.buffer, inputs)[0] == list(wanted if isinstance(wanted, tuple) else (wanted,))
