"""Slices, splits and the like through export, load and run: gone where the bytes lie in one piece."""

import pytest
import torch

from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.running import run_both

R, cat = torch.randn, torch.cat


def halves_swapped(x):
    t = x.sin()
    return cat([t[2:], t[:2]]).exp()


def stages(a, b):
    for _ in range(4):
        a, b = cat([a.sin(), b.cos()]).split(a.shape[0])
    return a + b


ELIDED = {
    "slice": (lambda x: x.sin()[1:3] * 2, (R(4, 6),)),
    "slice to the end": (lambda x: x.sin()[2:] * 2, (R(4, 6),)),
    "slice from behind": (lambda x: x.sin()[-3:-1] * 2, (R(6, 4),)),
    "slice beyond the end": (lambda x: x.sin()[2:99] * 2, (R(4, 6),)),
    "slice of an input": (lambda x: x[1:3] * 2, (R(4, 6),)),
    "slice of a slice": (lambda x: x.sin()[1:5][1:3] * 2, (R(6, 4),)),
    "slice within ones": (lambda x: x.sin()[:, 1:3] * 2, (R(1, 4, 6),)),
    "select": (lambda x: x.sin()[1] * 2, (R(4, 6),)),
    "select from behind": (lambda x: x.sin()[-1] * 2, (R(4, 6),)),
    "narrow": (lambda x: x.sin().narrow(0, 1, 2) * 2, (R(4, 6),)),
    "split": (lambda x: [t.exp() for t in x.sin().split(2)], (R(5, 6),)),
    "split with sizes": (lambda x: [t.exp() for t in x.sin().split([1, 3])], (R(4, 6),)),
    "chunk": (lambda x: [t.exp() for t in x.sin().chunk(3)], (R(5, 6),)),
    "unbind": (lambda x: [t.exp() for t in x.sin().unbind()], (R(3, 5),)),
    "one result unused": (lambda x: x.sin().split(2)[1] * 2, (R(4, 6),)),
    "stack of slices": (lambda x: torch.stack([x.sin()[:3], x.cos()[3:]]).exp(), (R(6),)),
    "squeeze and unsqueeze": (lambda x: x.sin().unsqueeze(0).exp().squeeze(0) + 1, (R(8),)),
    "clone": (lambda x: x.sin().clone() * 2, (R(6, 4),)),
    "a permute of ones": (lambda x: x.sin().view(1, 24).permute(1, 0) * 2, (R(4, 6),)),
    "as a result": (lambda x: x.sin()[1:3], (R(4, 6),)),
    "results side by side": (lambda x: x.sin().split(2), (R(4, 6),)),
    "cut and joined": (lambda x: cat([x.sin()[:2], x.sin()[2:]]) * 2, (R(4, 8),)),
    "split, computed, joined": (lambda x: cat([t.exp() for t in x.sin().split(2)]) * 2, (R(4, 8),)),
    "concat and split in a row": (stages, (R(256), R(256))),
    "empty": (lambda x: x.sin()[0:0].select(1, 1) + x.sum(), (R(2, 4, 5),)),
    "empty in the middle": (lambda x: x.sin()[:, 2:2].select(2, 3).sum() + x, (R(2, 4, 5),)),
    "bool": (lambda x: (x > 0)[1:5] & True, (R(7),)),
    "int8": (lambda x: (x + 1)[1:5] * 2, (torch.arange(7, dtype=torch.int8),)),
    "half": (lambda x: (x + 1)[1:5] * 2, (R(7).half(),)),
}

REFUSED = {
    "not contiguous": (lambda x: x.sin()[:, 1:3] * 2, (R(4, 6),)),
    "is a constant": (lambda x: x + CONSTANT[1:3], (R(2, 6),)),
    "would show bytes of output": (lambda x: (lambda t: (t[:3], t[1:]))(x.sin()), (R(4, 6),)),
    "would show bytes of input": (lambda x: x[1:3], (R(4, 6),)),
}

CONSTANT = R(4, 6)


@pytest.mark.parametrize("name", ELIDED)
def test_elided(name):
    function, inputs = ELIDED[name]
    stock, ours, report = run_both(function, inputs, inputs, alias_outputs=False)
    views = report.of(Share.VIEW)
    assert views
    assert all(d.outcome is Outcome.SHARED for d in views)
    assert ours.instructions <= stock.instructions - len(views)
    assert ours.arena <= stock.arena
    assert report.status == "optimal"


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, inputs = REFUSED[name]
    stock, ours, report = run_both(function, inputs, inputs)
    assert ours.arena <= stock.arena
    assert any(name in d.reason for d in report.of(Share.VIEW) if d.outcome is Outcome.REFUSED)


@pytest.mark.parametrize(
    "function", [lambda x: x.sin()[::2] * 2, lambda x: x.sin().permute(1, 0) * 2, lambda x: x.sin().expand(2, 4, 4) * 2]
)
def test_what_is_no_view_is_none(function):
    stock, ours, report = run_both(function, (R(4, 4),))
    assert not [d for d in report.of(Share.VIEW) if d.elided]
    assert stock.instructions == ours.instructions


def test_a_slice_that_would_cost_memory_stays():
    """Its one element would hold up 4 kB while 8 kB more live."""

    def function(x):
        t = x.sin()
        s = t[:1]
        u = torch.mm(t.view(32, 32), t.view(32, 32))
        return torch.mm(u, u), s * 2

    stock, ours, report = run_both(function, (R(1024),))
    assert ours.arena <= stock.arena
    assert report.status == "optimal"


def test_a_swap_needs_one_copy():
    """Joined the other way round, only one half can stay where it is."""
    stock, ours, report = run_both(halves_swapped, (R(4, 8),))
    copies = sum(d.copied for d in report.decisions)
    assert copies == 64
    assert ours.arena < stock.arena


def test_a_split_of_which_one_result_is_elsewhere():
    def function(x):
        a, b, c = x.sin().split(2)
        return cat([c, a]).exp(), b * 2

    stock, ours, report = run_both(function, (R(6, 4),))
    assert ours.arena < stock.arena
    assert sum(d.copied for d in report.decisions) < sum(d.nbytes for d in report.decisions)


def test_views_can_be_left_alone():
    _, _, report = run_both(lambda x: x.sin()[1:3] * 2, (R(4, 6),), elide_views=False)
    assert [d.reason for d in report.of(Share.VIEW)] == ["switched off"]


def test_the_objective_says_what_a_slice_may_cost():
    """A slice of which one row is needed long: copied for the smallest arena, kept in place for the least copying."""

    def function(x):
        t = x.sin()
        row = t[:4]
        u = torch.mm(x.cos(), x)
        return torch.mm(torch.mm(u, u), x), row.view(64, 1).exp() + 1

    def both(objective):
        _, ours, report = run_both(function, (R(16, 16),), objective=objective)
        assert report.status == "optimal"
        return ours.arena, sum(d.copied for d in report.decisions)

    (small, copied), (large, least) = both("peak"), both("copies")
    assert small <= large
    assert least <= copied
    assert both("weighted")[0] >= small


def test_many_inputs_side_by_side():
    """What the policy must compare grows with the ties, not with their cube."""
    many = 60
    _, ours, report = run_both(lambda *xs: cat(xs).exp(), tuple(R(4) for _ in range(many)))
    assert ours.concats == 0
    assert report.arenas[0].peak == 16 * many


@pytest.mark.parametrize("least", [4, 48, 64])
def test_a_minimum_part_alignment_never_costs_memory(least):
    def function(x, y):
        t = cat([x.sin(), y.cos(), x.exp()])
        return t[3:9] * 2, cat([y, x]).exp()

    inputs = (R(5), R(7))
    without, *_ = (run_both(function, inputs, elide_concats=False, elide_views=False, in_place=False)[1],)
    stock, ours, _ = run_both(function, inputs, min_part_alignment=least)
    assert ours.arena <= min(stock.arena, without.arena)
