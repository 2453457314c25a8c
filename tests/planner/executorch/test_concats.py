"""Every kind of concat through export, load and run: elided where it may be, refused with the reason where not, and
the outputs those of stock's plan bit for bit; where stock is wrong, those of eager."""

import logging

import pytest
import torch

from planner.executorch import arena_planning_pass
from planner.executorch.compare import compare
from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.models import Accumulator, Function

R, cat = torch.randn, torch.cat


def nhwc(*shape):
    return R(*shape).to(memory_format=torch.channels_last)


def shared(x):
    a, b, c = x.sin(), x.cos(), x.exp()
    return cat([a, b]).sin(), cat([a, b, c]).cos()


def used_again(x):
    a, b = x.sin(), x.cos()
    return cat([a, b]).exp(), a + b


def part_and_whole_out(x):
    a = x.sin()
    return cat([a, x.cos()]), a


def whole_out_twice(x):
    a = cat([x.sin(), x.cos()])
    return a, a


def twice(x):
    a = x.sin()
    return cat([a, a]).exp()


def conflict(x):
    a, b = x.sin(), x.cos()
    return cat([a, b]).exp(), cat([b, a]).exp()


ELIDED = {
    "nested": (lambda x: cat([cat([x.sin(), x.cos()]), x.exp()]).sigmoid(), (R(8),)),
    "prefix shared": (shared, (R(8),)),
    "parts are views": (lambda x: cat([x.sin().reshape(2, 8), x.cos().reshape(2, 8)]).exp(), (R(16),)),
    "the whole is viewed": (lambda x: cat([x.sin(), x.cos()]).reshape(4, 4).exp(), (R(8),)),
    "one of several outputs": (lambda x: cat([torch.topk(x, 2).values, x.sin()]).exp(), (R(6),)),
    "used again": (used_again, (R(8),)),
    "graph inputs": (lambda x, y: (cat([x, y]).exp(), x * 2, y + 1), (R(8), R(8))),
    "graph output": (lambda x: cat([x.sin(), x.cos()]), (R(8),)),
    "the same output twice": (whole_out_twice, (R(8),)),
    "an empty part": (lambda x: cat([x.sin(), torch.empty(0), x.cos()]).exp(), (R(8),)),
    "an empty slice": (lambda x: cat([x.sin(), x[:, :0].sin(), x.cos()], 1).exp(), (R(1, 8),)),
    "one part": (lambda x: cat([x.sin()]).exp(), (R(8),)),
    "negative dimension": (lambda x: cat([x.sin(), x.cos()], -1).exp(), (R(1, 8),)),
    "ones outside the dimension": (lambda x: cat([x.sin(), x.cos()], 2).exp(), (R(1, 1, 4, 3),)),
    "stack of unbound parts": (lambda x: torch.stack([t.sin() for t in x.unbind(0)]).exp(), (R(3, 5),)),
    "odd sizes, int8": (lambda x: cat([x + 1, x * 2]), (torch.arange(7, dtype=torch.int8),)),
    "odd sizes, bool": (lambda x: cat([x > 0, x < 1]) & True, (R(7),)),
    "half": (lambda x: cat([x + 1, x * 2, x[:8] - 1]), (R(16).half(),)),
    "odd sizes, half": (lambda x: cat([x + 1, x * 2, x[:3] - 1]), (R(7).half(),)),
    "unused inputs": (lambda x, y, z: cat([x.sin(), x.cos()]).exp(), (R(8), R(100), R(3))),
    "channels last, outermost real dimension": (lambda x: cat([x.sin(), x.cos()], 2).exp(), (nhwc(1, 4, 3, 3),)),
}

CONSTANT = R(8)

COPIED_IN_PART = {
    "is a constant": (lambda x: cat([x.sin(), CONSTANT, x.cos()]).exp(), (R(8),)),
    "conflicting place": (twice, (R(8),)),
    "would show bytes of output": (part_and_whole_out, (R(8),)),
    "is a mutable buffer": (Accumulator, (R(4),)),
}

REFUSED = {
    "not contiguous": (lambda x: cat([x.sin(), x.cos()], 1).exp(), (R(2, 8),)),
    "mixed dtype": (lambda x, y: cat([x.sin(), y + 1]).exp(), (R(8), torch.arange(8))),
    "output of control flow": (
        lambda x: cat([torch.cond(x.sum() > 0, lambda z: z + 1, lambda z: z - 1, (x,)), x.sin()]).cos(),
        (R(4),),
    ),
}


@pytest.fixture(params=[logging.WARNING, logging.DEBUG], ids=["", "debug log"])
def root_level(request):
    """At DEBUG stock's own verifier runs."""
    root = logging.getLogger()
    before, disabled = root.level, logging.root.manager.disable
    root.setLevel(request.param)
    logging.disable(logging.NOTSET)
    yield
    root.setLevel(before)
    logging.disable(disabled)


@pytest.mark.parametrize("name", ELIDED)
@pytest.mark.usefixtures("root_level")
def test_elided(name):
    function, inputs = ELIDED[name]
    c = compare(Function(function), inputs, arena_planning_pass(strict=True))
    assert c.agree
    assert c.ours.concats == 0
    assert c.ours.copied < c.stock.copied
    assert c.ours.instructions <= c.stock.instructions - c.stock.concats
    assert c.ours.arena <= c.stock.arena
    assert c.planning_pass.reports[-1].status == "optimal" or "odd" in name  # the bound knows no conditional alignment


@pytest.mark.parametrize("name", COPIED_IN_PART)
@pytest.mark.usefixtures("root_level")
def test_copied_in_part(name):
    function, inputs = COPIED_IN_PART[name]
    model = Accumulator() if function is Accumulator else Function(function)
    c = compare(model, inputs, arena_planning_pass(strict=True))
    assert c.agree
    assert c.ours.arena <= c.stock.arena
    decisions = c.planning_pass.reports[-1].of(Share.CONCAT)
    (partial, *_) = [d for d in decisions if d.outcome is Outcome.PARTIAL and name in d.reason]
    assert 0 < partial.copied < partial.nbytes


def test_of_two_places_for_the_same_parts_one_is_in_place():
    c = compare(Function(conflict), (R(8),), arena_planning_pass(strict=True))
    assert c.agree
    assert (c.stock.copied, c.ours.copied) == (128, 64)
    assert any("conflicting place" in d.reason for d in c.planning_pass.reports[0].of(Share.CONCAT))


def test_a_part_is_copied_in_its_own_layout():
    """A channels-last part that cannot be placed; stock's concat is wrong here."""
    constant = nhwc(1, 4, 3, 3)
    c = compare(
        Function(lambda x: cat([x.sin(), constant, x.cos()], 2).exp()), (nhwc(1, 4, 3, 3),), arena_planning_pass()
    )
    assert c.ours_near_eager
    assert c.planning_pass.reports[0].of(Share.CONCAT)[0].outcome is Outcome.PARTIAL


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, inputs = REFUSED[name]
    c = compare(Function(function), inputs, arena_planning_pass(strict=True))
    assert c.agree
    assert c.ours.arena <= c.stock.arena
    (decision,) = c.planning_pass.reports[-1].of(Share.CONCAT)
    assert decision.outcome is Outcome.REFUSED
    assert name in decision.reason
    assert c.ours.concats == 1


def test_the_issue():
    """pytorch/executorch issue 3210: half of what it planned then, no copy, proven."""
    from planner.executorch.example_models import SinCosCat

    c = compare(SinCosCat(), (R(64),), arena_planning_pass())
    assert c.equal
    assert c.agree
    assert (c.stock.instructions, c.ours.instructions) == (4, 3)
    assert (c.ours.arena, c.ours.concats) == (512, 0)
    report = c.planning_pass.reports[0]
    assert (report.status, report.arenas[0].gap, report.elided) == ("optimal", 0.0, ("aten_cat_default",))
    assert "concat: 1 shared" in str(report)
    assert "in place: 2 shared, 1 refused" in str(report)
    assert "aten_sin_default refused: operand 'x' is still needed later" in str(report)


def test_a_channels_last_concat_is_right_where_stock_is_wrong():
    function, inputs = ELIDED["channels last, outermost real dimension"]
    c = compare(Function(function), inputs, arena_planning_pass())
    assert c.ours_near_eager
    assert not c.stock_near_eager
