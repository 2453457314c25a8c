"""Branches: planned so that the results of one are safe from the next."""

import logging
from types import SimpleNamespace

import pytest
import torch
from functorch.experimental.control_flow import map as torch_map
from torch.utils._pytree import tree_leaves

from planner.api import PlanningError
from planner.executorch import arena_planning_pass
from planner.executorch.compare import compare, lower, near, run_program, to_program
from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.models import Function
from tests.planner.executorch.running import run_both

R = torch.randn


def plus_or_minus(z):
    return torch.cond(z.sum() > 0, lambda z: z + 1, lambda z: z - 1, (z,))


def two_live_results(z):
    """pytorch/executorch issue 21490: with stock's plan the second overwrites the first."""
    return plus_or_minus(z) + torch.cond(z.sum() > 0, lambda z: z * 3, lambda z: z * 4, (z,))


def three_in_a_row(z):
    a = plus_or_minus(z)
    b = plus_or_minus(a * 2)
    return plus_or_minus(b - 3) + a


def nested(z):
    def inner(z):
        return plus_or_minus(z * 2) + z

    a = torch.cond(z.max() > 1, inner, lambda z: z.sin(), (z,))
    return a + plus_or_minus(z) * z


def concats_inside(z):
    c = torch.cond(z.sum() > 0, lambda z: torch.cat([z + 1, z]), lambda z: torch.cat([z, z + 1]), (z,))
    return c.sin() + torch.cat([z.exp(), z.cos()])


def viewed(z):
    """A view of a result would lie where the plan has the result, and not where the branch left it; stock is wrong."""
    y = z + 1
    r = torch.cond(z.sum() > 0, lambda y: -(y * 3 - y.sin()), lambda y: y * 2 + y.sin(), (y,))
    return r.reshape(2, 2).reshape(1, 4).sin() + r


def viewed_and_returned(z):
    return two_live_results(z), plus_or_minus(z).reshape(2, 2)


def two_results(z):
    """Each branch leaves them in places of its own."""
    y = z + 1
    a, b = torch.cond(z.sum() > 0, lambda y: (-y, y * 3), lambda y: (y * 2, y * 4), (y,))
    return a.sin() + b.cos()


CASES = {f.__name__: f for f in (plus_or_minus, two_live_results, three_in_a_row, nested, concats_inside)}
CASES |= {f.__name__: f for f in (viewed, viewed_and_returned, two_results)}
INPUTS = [torch.arange(4.0), -torch.arange(4.0), torch.tensor([0.1, 0.2, 0.3, -0.9])]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_cond(name, debug):
    """Every way through, several times in a row, also with stock's own verifier on."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG if debug else level)
    try:
        model = Function(CASES[name])
        planning_pass = arena_planning_pass(strict=True)
        program = to_program(lower(model, (INPUTS[0],)), planning_pass)
    finally:
        root.setLevel(level)
    runs = [(x,) for x in INPUTS * 2]
    for (x,), got in zip(runs, run_program(program.buffer, *runs), strict=True):
        assert near(got, tree_leaves(model(x)))
    assert planning_pass.reports[-1].graph == "method 0"
    assert planning_pass.reports[0].graph == "branch in method 0"


def test_stock_is_wrong_where_two_results_live_and_ours_is_right():
    c = compare(Function(two_live_results), (INPUTS[0],), arena_planning_pass())
    assert not c.stock_near_eager
    assert c.ours_near_eager


def test_the_judge_notices_a_view_of_what_a_branch_left_elsewhere(monkeypatch):
    from planner.executorch import job

    def second_viewed(z):
        a, b = torch.cond(z.sum() > 0, lambda y: (-y, y * 3), lambda y: (y * 2, y * 4), (z,))
        return a, b.reshape(2, 2).sin()

    edge = lower(Function(second_viewed), (INPUTS[0],))
    to_program(edge, arena_planning_pass(strict=True))
    monkeypatch.setattr(job, "settle_views", lambda *_: [])
    with pytest.raises(PlanningError, match=r"must hold 'cond\.1'"):
        to_program(edge, arena_planning_pass(strict=True))


@pytest.mark.parametrize("given", [False, True])
def test_a_result_of_a_branch_that_lies_where_the_caller_wants_it(given):
    """Once the caller has given the output memory, the branch's own tensor lies there; its parts would not."""

    def model(x):
        y = x + 1
        joined = torch.cond(x[0] > 0, lambda a: torch.cat([a * 2, a.sin()]), lambda a: torch.cat([-a, a]), (y,))
        cut = torch.cond(x[0] > 0, lambda a: a.sin()[:2] * 1, lambda a: a.cos()[2:].clone(), (y,))
        return joined, cut

    runs = [(s * torch.arange(1.0, 5),) for s in (1, -1, 1, -1)]
    run_both(model, *runs, alloc_graph_output=not given, stock_is_wrong=True)


def test_the_judge_notices_parts_of_a_result_of_a_branch(monkeypatch):
    from planner.executorch import graph_flow
    from planner.program.dataflow import Role

    edge = lower(Function(concats_inside), (INPUTS[0],))
    to_program(edge, arena_planning_pass(strict=True))
    roles = {role.name: role for role in Role} | {"RESULT": Role.VALUE}
    monkeypatch.setattr(graph_flow, "Role", SimpleNamespace(**roles))
    with pytest.raises(PlanningError, match="must hold"):
        to_program(edge, arena_planning_pass(strict=True))


def test_branches_share_but_never_the_tensors_of_their_caller():
    def branch(z):
        a, b = (z * 2).relu().split(4)
        return torch.cat([b.sin(), a.cos(), z[:4]]).exp()

    def model(z):
        return torch.cond(z.sum() > 0, branch, lambda z: torch.cat([z, z[:4]]).exp(), (z,)) * 2, z

    planning_pass = arena_planning_pass(strict=True)
    inputs = [(torch.cat([x, x]),) for x in INPUTS]
    program = to_program(lower(Function(model), inputs[0]), planning_pass)
    for (x,), got in zip(inputs, run_program(program.buffer, *inputs), strict=True):
        assert near(got, model(x))
    first, second, _ = planning_pass.reports
    assert all(any(d.outcome is not Outcome.REFUSED for d in first.of(share)) for share in Share)
    (partial,) = second.of(Share.CONCAT)
    assert (partial.outcome, partial.copied) == (Outcome.PARTIAL, 32)
    for d in (*first.decisions, *second.decisions):
        if "aten_mul" in d.op or "slice" in d.op or d is partial:
            assert "is an input of a branch: the caller's tensor" in d.reason


def test_map():
    c = compare(
        Function(lambda x, y: torch_map(lambda a, b: a + b, x, y).sin() + 1),
        (R(3, 4), R(4)),
        arena_planning_pass(strict=True),
    )
    assert c.agree
    assert c.equal


def test_scan():
    from torch._higher_order_ops.scan import scan

    def step(carry, x):
        return carry + x, (carry * x).clone()

    def model(init, xs):
        carry, ys = scan(step, init, xs)
        return carry.sin(), ys + 1

    c = compare(Function(model), (R(4), R(3, 4)), arena_planning_pass(strict=True))
    assert c.agree
    assert c.equal


def test_views_inside_bodies():
    """An input of a body may be the caller's tensor, wherever stock plans it; stock reads the wrong bytes."""
    from torch._higher_order_ops.scan import scan

    def mapped(x, y):
        return torch_map(lambda a, b: a.sin() + b.view(2, 4).exp().view(8), x, y)

    def scanned(x, y):
        return scan(lambda c, a: ((c.view(2, 4).exp() * 0.1).view(8) + a, c * 1), y, x, dim=0)

    for function in (mapped, scanned):
        run_both(function, *[(R(4, 8), R(8)) for _ in range(3)], stock_is_wrong=True)


def test_devices_are_planned_apart_and_judged_together():
    """Compiled only: there is no such device here."""
    from executorch.exir.backend.test.device_util import DeviceAwarePartitioner

    class Model(torch.nn.Module):
        def forward(self, x, y):
            t = torch.cond(x.sum() > 0, lambda a: a.sin().flip(0) * a.cos(), lambda a: a * 3, (x,))
            return (t + y).sin(), torch.cat([t.flip(0), x + y, x])[2:9]

    edge = lower(Model(), (R(8), R(8)), [DeviceAwarePartitioner("cuda:0")])
    planning_pass = arena_planning_pass(strict=True)
    sizes = [
        to_program(edge, p).executorch_program.execution_plan[0].non_const_buffer_sizes for p in (None, planning_pass)
    ]
    assert len(sizes[0]) == len(sizes[1]) == 3
    assert sizes[1][2] <= sizes[0][2]
    assert [r.graph for r in planning_pass.reports][-2:] == ["method 0", "method 0, cuda:0"]
