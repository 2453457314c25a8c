"""The second judge on a real exported graph: every way of spoiling the plan is caught."""

import operator

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from torch.export import export

from planner.api import Request
from planner.executorch import nodes
from planner.executorch.graph_trace import trace
from planner.executorch.job import Call, GraphJob, Settings
from planner.executorch.planning_pass import ArenaPlanningPass, arena_planning_pass
from planner.judge.memory import ReplayError
from planner.judge.replay import replay
from planner.program.share_rules import Share
from planner.program.sharing import Policy
from tests.planner.executorch.models import Function


class Captured(Exception):
    """Carries a planned graph out of the pass."""


class Capture(ArenaPlanningPass):
    """Plans, then hands the graph over before it is emitted."""

    def _plan_graph(self, alignment, specs, module, signature, extra_padding):
        if module is not self._method:
            return super()._plan_graph(alignment, specs, module, signature, extra_padding)
        job = GraphJob("captured", Call(alignment, list(specs), module, signature, extra_padding), self.settings)
        report = job.run()
        raise Captured(job.before, module, signature, report)


def model(x, unused):
    a, b = x.sin(), x.cos()
    c = torch.cat([a, b])
    y = c.sigmoid()
    values, _ = torch.topk(y, 4)
    return values + x[:4]


def plan_and_stop(function, inputs, policy=None):
    """The trace before, the planned graph, its signature, the specs by node name, and the report."""
    capture = Capture(Settings(Request(policy or Policy()), strict=True))
    model = function if isinstance(function, torch.nn.Module) else Function(function)
    edge = to_edge(export(model, inputs))
    with pytest.raises(Captured) as captured:
        edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=capture))
    before, module, signature, report = captured.value.args
    specs = {n.name: nodes.specs_of(n) for n in module.graph.nodes if n.op in ("call_function", "placeholder")}
    replay(before, trace(module, signature))
    return before, module, signature, specs, report


@pytest.fixture
def planned():
    return plan_and_stop(model, (torch.randn(8), torch.randn(6)))


def caught(planned):
    before, module, signature, *_ = planned
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
    before, module, signature, *_ = planned
    (node,) = [n for n in module.graph.nodes if "sigmoid" in n.name and not nodes.is_alloc(n)]
    with pytest.raises(ReplayError, match="is missing"):
        replay(before, trace(module, signature, {node.name}))


def test_a_dropped_clone():
    """Two places for one tensor: one is a copy, and it is needed."""
    before, module, signature, *_ = plan_and_stop(lambda x: torch.cat([(t := x.sin()), t]).exp(), (torch.randn(8),))
    (clone,) = [n for n in module.graph.nodes if n.target is torch.ops.aten.clone.out]
    with pytest.raises(ReplayError, match="must hold 'aten_sin_default'"):
        replay(before, trace(module, signature, {clone.name}))


def elementwise(module, word):
    (node,) = [n for n in module.graph.nodes if word in n.name and not nodes.is_alloc(n)]
    return node


def test_two_slices_of_one_tensor_written_over_each_other():
    def function(x):
        t = x.sin()
        return torch.flip(t[0:6], [0]).exp(), torch.tan(t[2:8])

    planned = plan_and_stop(function, (torch.randn(8, 4),))
    first, second = elementwise(planned[1], "flip"), elementwise(planned[1], "tan")
    assert len([d for d in planned[4].decisions if d.share is Share.VIEW and d.elided]) == 2
    nodes.specs_of(first)[0].mem_offset = nodes.specs_of(second.args[0])[0].mem_offset
    assert "must hold 'aten_sin_default'" in caught(planned)


def rows(x):
    return torch.cat([x, x, x, x]).sin()


COUNTER_EXAMPLES = {
    "cat([a, b]) + a": (lambda x: (lambda a: torch.cat([a, x.cos()]) + a)(x.sin()), "add"),
    "t - t[0:1]": (lambda x: (lambda t: t - t[0:1])(rows(x)), "sub"),
    "t[0:3] + t[1:4]": (lambda x: (lambda t: t[0:3] + t[1:4])(rows(x)), "add"),
    "s + relu(s)[0:2]": (lambda x: (lambda s: s + s.relu()[0:2])(rows(x)[0:2]), "relu"),
}


@pytest.mark.parametrize("name", COUNTER_EXAMPLES)
def test_in_place_over_bytes_that_another_operand_shows(name):
    """The views are gone; then the result is forced onto its first operand."""
    function, word = COUNTER_EXAMPLES[name]
    planned = plan_and_stop(function, (torch.randn(1, 4),), Policy(frozenset({Share.CONCAT, Share.VIEW})))
    node = elementwise(planned[1], word)
    assert all(d.elided for d in planned[4].decisions if d.share is Share.VIEW)
    nodes.specs_of(node)[0].mem_offset = nodes.specs_of(node.args[0])[0].mem_offset
    message = caught(planned)
    assert f"half of {node.name}" in message or f"finds '{node.name}'" in message


class Cache(torch.nn.Module):
    """The old cache is read after the new one is born."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(8))

    def forward(self, x):
        new = self.k.roll(1) + x
        old = self.k.flip(0)
        self.k.copy_(new)
        return old * 2, new.sin()


def test_a_write_back_moved_too_early():
    planned = plan_and_stop(Cache(), (torch.randn(8),))
    _, module, _, _, report = planned
    assert len(report.write_backs) == 1
    (write,) = [n for n in module.graph.nodes if n.name in report.write_backs]
    (reader,) = [n for n in module.graph.nodes if n.target is torch.ops.aten.flip.out]
    assert list(module.graph.nodes).index(write) > list(module.graph.nodes).index(reader)
    reader.prepend(write)
    assert "aten_flip_default" in caught(planned)


def test_an_in_place_write_inside_a_branch():
    """A branch's input is the caller's tensor, which is read again after the branch."""

    def function(x):
        t = x.sin()
        return torch.cond(x.sum() > 0, lambda z: z.relu(), lambda z: z.exp(), (t,)) + t

    planned = plan_and_stop(function, (torch.randn(8),))
    module = planned[1]
    (cond,) = [n for n in module.graph.nodes if nodes.is_control_flow(n)]
    inner = next(n for b in nodes.branches(module, cond) for n in b.graph.nodes if "relu" in n.name)
    nodes.specs_of(inner)[0].mem_offset = spec_of(planned, "aten_sin").mem_offset
    assert "finds 'scratch of cond'" in caught(planned)


def test_a_body_whose_slice_lies_on_a_live_tensor():
    from functorch.experimental.control_flow import map as torch_map

    def function(x, y):
        t = y.sin()
        return torch_map(lambda a, b: a * b.exp(), x, y) + t

    planned = plan_and_stop(function, (torch.randn(3, 8), torch.randn(8)))
    module = planned[1]
    (node,) = [n for n in module.graph.nodes if nodes.is_control_flow(n)]
    (body,) = nodes.branches(module, node)
    first = next(n for n in body.graph.nodes if n.op == "placeholder")
    nodes.specs_of(first)[0].mem_offset = spec_of(planned, "aten_sin").mem_offset
    assert "scratch of" in caught(planned)


def test_the_result_of_a_cond_inside_a_cond_lies_where_the_innermost_branch_left_it():
    def inner(z):
        return torch.cond(z.max() > 1, lambda z: z.sin(), lambda z: z.flip(0).cos(), (z,))

    def function(x):
        return torch.flip(torch.cond(x.sum() > 0, inner, lambda z: z * 2, (x,)), [0]), x.tan().flip(0)

    planned = plan_and_stop(function, (torch.randn(8),))
    module = planned[1]
    (outer,) = [n for n in module.graph.nodes if nodes.is_control_flow(n)]
    places = {r.places for s in trace(module, None).steps for r in s.writes if s.name == outer.name}
    assert {len(p) for p in places} == {3}


@pytest.mark.parametrize("index", [0, 1])
def test_an_item_that_is_not_what_it_was(planned, index):
    item = [n for n in planned[1].graph.nodes if n.target is operator.getitem][index]
    item.args = (item.args[0], 1 - item.args[1])
    assert "is not item 1" in caught(planned)


def test_an_op_that_writes_elsewhere(planned):
    sin, cos = (elementwise(planned[1], word) for word in ("sin", "cos"))
    sin.kwargs, cos.kwargs = cos.kwargs, sin.kwargs
    assert "writes to other tensors" in caught(planned)


def test_the_default_pass_is_judged_twice(monkeypatch):
    """Once before the plan is final, once on the graph as it leaves."""
    from planner.executorch import job, planning_pass

    calls = []
    for place in (job, planning_pass):
        monkeypatch.setattr(place, "replay", lambda before, after: calls.append(after))
    edge = to_edge(export(Function(lambda x: x.sin()), (torch.randn(8),)))
    edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=arena_planning_pass()))
    assert len(calls) == 2
