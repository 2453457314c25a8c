"""Elementwise results written onto operands that die there, through export, load and run."""

import pytest
import torch

from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.running import run_both

R, cat = torch.randn, torch.cat


def slices_added(x):
    t = x.sin()
    return t[0:3] + t[1:4]


def first_row_subtracted(x):
    t = x.sin()
    return t - t[0:1]


def activated_slice_added(x):
    s = x.sin()[0:2]
    y = s.relu()
    return s + y[0:2]


def part_added(x):
    a, b = x.sin(), x.cos()
    return cat([a, b]) + a


def row_of_itself(x):
    t = x.sin()
    return t + t.view(4, 4)[:1].view(1, 4)


def chain(x):
    return x.sin().relu().sigmoid().exp().abs()


CASES = {
    "a chain": (chain, (R(64),), 256),
    "onto an input": (lambda x: x.sin(), (R(64),), 256),
    "broadcast": (lambda x, y: x.sin() + y, (R(4, 8), R(8)), 160),
    "with itself": (lambda x: (lambda t: t + t)(x.sin()), (R(4, 8),), 128),
    "either operand": (lambda x, y: x.sin() + y.cos(), (R(32), R(32)), 256),
    "where": (lambda x, y: torch.where(x > 0, x.sin(), y.cos()), (R(32), R(32)), 288),
    "half": (lambda x: x.sin().relu(), (R(64).half(),), 128),
    "int8": (lambda x: (x + 1) * 2, (torch.arange(64, dtype=torch.int8),), None),
    "into a concat": (lambda x, y: cat([x.sin().relu(), y.cos().relu()]).exp(), (R(32), R(32)), 256),
    "over a concat": (lambda x: cat([x.sin(), x.cos()]).sigmoid(), (R(64),), 512),
    "of slices": (lambda x: [t.exp() for t in x.sin().split(2)], (R(4, 8),), 128),
    "the operand is still needed": (lambda x: (lambda t: t.exp() + t)(x.sin()), (R(64),), 512),
    "the operand is an output": (lambda x: (lambda t: (t, t.exp()))(x.sin()), (R(64),), 512),
    "t[0:3] + t[1:4]": (slices_added, (R(4, 3),), None),
    "t - t[0:1]": (first_row_subtracted, (R(4, 3),), None),
    "s + relu(s)[0:2]": (activated_slice_added, (R(4, 3),), None),
    "cat([a, b]) + a": (part_added, (R(1, 3),), None),
    "a row of itself": (row_of_itself, (R(4, 4),), None),
}


@pytest.mark.parametrize("name", CASES)
def test_in_place(name):
    function, inputs, peak = CASES[name]
    stock, ours, report = run_both(function, inputs, inputs, inputs)
    assert ours.arena <= stock.arena
    if peak is not None:
        assert (ours.arena, report.status) == (peak, "optimal")


def test_what_is_not_elementwise_is_not_in_place():
    def function(x):
        return torch.softmax(x.sin(), 0), torch.flip(x.cos(), [0]), torch.mm(x.exp(), x.tan()), x.cumsum(0)

    _, _, report = run_both(function, (R(4, 4),))
    assert not [d for d in report.of(Share.IN_PLACE) if "mm" in d.op or "softmax" in d.op or "flip" in d.op]


def test_in_place_can_be_left_alone():
    _, ours, report = run_both(chain, (R(64),), in_place=False)
    assert ours.arena == 512
    assert {(d.outcome, d.reason) for d in report.of(Share.IN_PLACE)} == {(Outcome.REFUSED, "switched off")}
