"""The second judge on a real exported graph: every way of spoiling the plan is caught."""

import operator

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from torch.export import export

from planner.executorch import nodes
from planner.executorch.job import Call, Job, Settings
from planner.executorch.planning_pass import ArenaPlanningPass, arena_planning_pass
from planner.executorch.trace import trace
from planner.replay import ReplayError, replay
from tests.executorch.models import Function


class Captured(Exception):
    """Carries a planned graph out of the pass."""


class Capture(ArenaPlanningPass):
    """Plans, then hands the graph over before it is emitted."""

    def _plan_graph(self, alignment, specs, module, signature, extra_padding):
        job = Job("captured", Call(alignment, list(specs), module, signature, extra_padding), self.settings)
        job.run()
        raise Captured(job.before, module, signature)


def model(x, unused):
    a, b = x.sin(), x.cos()
    c = torch.cat([a, b])
    y = c.sigmoid()
    values, _ = torch.topk(y, 4)
    return values + x[:4]


@pytest.fixture
def planned():
    """The trace before, the planned graph, its signature, and the specs by node name."""
    capture = Capture(Settings(strict=True))
    edge = to_edge(export(Function(model), (torch.randn(8), torch.randn(6))))
    with pytest.raises(Captured) as captured:
        edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=capture))
    before, module, signature = captured.value.args
    specs = {n.name: nodes.specs_of(n) for n in module.graph.nodes if n.op in ("call_function", "placeholder")}
    replay(before, trace(module, signature))
    return before, module, signature, specs


def caught(planned):
    before, module, signature, _ = planned
    with pytest.raises(ReplayError) as error:
        replay(before, trace(module, signature))
    return str(error.value)


def spec_of(planned, word, k=0):
    (name,) = [n for n in planned[3] if word in n and "alloc" not in n and "getitem" not in n]
    return planned[3][name][k]


@pytest.mark.parametrize("word", ["sin", "cos"])
@pytest.mark.parametrize("by", [-4, 4])
def test_a_shifted_part(planned, word, by):
    spec_of(planned, word).mem_offset += by if spec_of(planned, word).mem_offset + by >= 0 else 8
    assert "must hold" in caught(planned)


def test_two_parts_swapped(planned):
    a, b = spec_of(planned, "sin"), spec_of(planned, "cos")
    a.mem_offset, b.mem_offset = b.mem_offset, a.mem_offset
    assert "must hold" in caught(planned)


def test_an_elided_concat_whose_part_is_overwritten(planned):
    spec_of(planned, "cos").mem_offset = spec_of(planned, "sin").mem_offset
    assert "must hold" in caught(planned)


def test_an_output_over_its_live_input(planned):
    """What a lifetime that is one step too short would allow."""
    spec_of(planned, "topk", 0).mem_offset = spec_of(planned, "sigmoid").mem_offset
    assert "half of" in caught(planned)


def test_an_input_over_live_bytes(planned):
    unused = next(s[0] for n, s in planned[3].items() if (s[0].nbytes() == 24 and "args" in n) or n.endswith("_1"))
    x = next(s[0] for s in planned[3].values() if s[0].nbytes() == 32)
    unused.mem_offset = x.mem_offset
    assert "the start of the run" in caught(planned)


def test_an_unused_output_over_live_bytes(planned):
    x = next(s[0] for s in planned[3].values() if s[0].nbytes() == 32)
    spec_of(planned, "topk", 1).mem_offset = x.mem_offset
    assert "must hold" in caught(planned)


def test_a_graph_that_lost_an_op(planned):
    before, module, signature, _ = planned
    (node,) = [n for n in module.graph.nodes if "sigmoid" in n.name and not nodes.is_alloc(n)]
    with pytest.raises(ReplayError, match="is missing"):
        replay(before, trace(module, signature, {node.name}))


def test_the_default_pass_is_judged_twice(monkeypatch):
    """Once before the plan is final, once on the graph as it leaves."""
    from planner.executorch import job, planning_pass

    calls = []
    for place in (job, planning_pass):
        monkeypatch.setattr(place, "replay", lambda before, after: calls.append(after))
    edge = to_edge(export(Function(lambda x: x.sin()), (torch.randn(8),)))
    edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=arena_planning_pass()))
    assert len(calls) == 2
