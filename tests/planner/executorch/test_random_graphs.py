"""Random graphs: ours computes what stock's plan and eager do, run after run, in no more memory.

A failure prints its seed, its source and how to run it again.
"""

from __future__ import annotations

import inspect
from collections import Counter

import pytest
import torch

from planner.executorch import arena_planning_pass, planning_pass
from planner.executorch.planning_pass import ArenaPlanningPass
from tests.planner.executorch.random_check import Difference, NotExported, Outcome, check, options_of
from tests.planner.executorch.random_graphs import random_graph

SHORT = [range(k, k + 10) for k in range(0, 50, 10)]
LONG = [range(k, k + 100) for k in (50, 150, *range(1000, 3000, 100))]

KINDS = {
    "concats": ("cat.default",),
    "slices": ("slice_copy.Tensor", "select_copy.int", "split_with_sizes_copy.default", "split_copy.Tensor"),
    "pointwise": (
        *("add.Tensor", "sub.Tensor", "mul.Tensor", "relu.default", "neg.default", "clamp.default", "abs.default"),
        *("maximum.default", "minimum.default", "where.self", "bitwise_and.Tensor", "sigmoid.default"),
    ),
    "conds": ("cond",),
    "buffer writes": ("copy.default", "index_put.default", "slice_scatter.default", "index_copy.default"),
}
"""For the statistics: ops of the edge dialect."""


DRAWN = (
    *("torch.cat([", "self.p", "self.c", "self.b", ".copy_(", "index_copy_", "cond(", ":2]", ".narrow(", ".unbind("),
    *(".split([", ".chunk(", "torch.stack", ".permute(", "torch.where", "F.conv2d", "torch.topk", "F.layer_norm"),
    *("torch.zeros(0", "torch.float16", " > "),
)
"""Text that must be in several of the first graphs."""


def seeds_id(seeds):
    return f"seeds {seeds[0]}-{seeds[-1]}"


def outcome_of(seed):
    """The outcome, or what went wrong; None if ExecuTorch does not lower the graph."""
    try:
        return check(seed)
    except NotExported:
        return None
    except Exception as error:  # whatever it is, the seed must be told
        return f"seed {seed}: {type(error).__name__}: {error}"


def check_all(seeds):
    outcomes = list(map(outcome_of, seeds))
    print(f"{seeds_id(seeds)}: {statistics([o for o in outcomes if isinstance(o, Outcome)])}")
    assert outcomes.count(None) <= max(1, len(seeds) // 50)
    failures = [o for o in outcomes if isinstance(o, str)]
    assert not failures, "\n\n".join([f"{len(failures)} of {len(seeds)} graphs", *failures])


def statistics(outcomes):
    ops = sum((o.ops for o in outcomes), Counter())
    counts = {kind: sum(ops[n] for n in names) for kind, names in KINDS.items()}
    counts["elided"] = sum(o.stock.concats - o.ours.concats for o in outcomes)
    counts["stock wrong"] = sum(not o.stock_right for o in outcomes)
    arena = sum(o.ours.arena for o in outcomes) / max(1, sum(o.stock.arena for o in outcomes))
    return f"{len(outcomes)} graphs, {counts}, arena {arena:.3f} of stock's"


@pytest.mark.parametrize("seeds", SHORT, ids=seeds_id)
def test_random_graphs(seeds):
    check_all(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", LONG, ids=seeds_id)
def test_more_random_graphs(seeds):
    check_all(seeds)


def test_a_seed_gives_the_same_graph():
    first, second = random_graph(5), random_graph(5)
    assert first.source == second.source
    for a, b in zip((*first.inputs, *first.wanted), (*second.inputs, *second.wanted), strict=True):
        assert all(map(torch.equal, a, b))


def test_the_generator_draws_what_it_is_there_for():
    sources = [random_graph(seed).source for seed in range(200)]
    times = {text: sum(text in source for source in sources) for text in DRAWN}
    assert min(times.values()) >= 3, times


def test_options_are_those_of_the_pass():
    drawn = [{**both, **ours} for both, ours in map(options_of, range(50))]
    assert set(drawn[0]) <= set(inspect.signature(arena_planning_pass).parameters)
    assert all(len({d[k] for d in drawn}) > 1 for k in drawn[0])


def test_a_wrong_plan_is_noticed(monkeypatch):
    """One tensor moved by 16 bytes, past both judges."""
    real = ArenaPlanningPass._plan_graph

    def spoiled(self, alignment, specs, *rest):
        sizes = real(self, alignment, specs, *rest)
        last = max(specs, key=lambda s: s.mem_offset or 0)
        last.mem_offset = max(0, last.mem_offset - 16)
        return sizes

    monkeypatch.setattr(ArenaPlanningPass, "_plan_graph", spoiled)
    monkeypatch.setattr(planning_pass, "replay", lambda before, after: None)
    noticed = [seed for seed in range(5) if not isinstance(outcome_of(seed), Outcome)]
    assert noticed
    with pytest.raises(Difference, match=rf"seed {noticed[0]}: run .* differs(.|\n)*again: python -c"):
        check(noticed[0])
