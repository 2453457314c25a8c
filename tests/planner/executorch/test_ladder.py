"""The rungs below an export: synthetic specs, then graphs made by hand, read, traced, planned and judged."""

import pytest
import torch
from executorch.exir import memory
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
from executorch.exir.tensor import TensorSpec
from torch.fx import Graph, GraphModule

from planner.api import PlanningError, plan
from planner.executorch.algorithm import arena_algorithm
from planner.executorch.graph_flow import read_graph
from planner.executorch.graph_rewrite import Rewrite, refresh_output_specs
from planner.executorch.graph_trace import trace
from planner.judge.memory import ReplayError
from planner.judge.replay import Move, replay
from planner.program.dataflow import OpKind, Role

CAT = torch.ops.aten.cat.out


def spec(*shape, dtype=torch.float32, const=False):
    return TensorSpec(dtype, torch.Size(shape), const=const)


class HandMade:
    """x -> sin, cos -> cat -> out, with specs, as the graph is when it comes to memory planning."""

    def __init__(self, elements=8, axis=0, shape=None):
        shape = shape or (elements,)
        whole = list(shape)
        whole[axis] *= 2
        self.graph = Graph()
        self.specs = {}
        x = self.graph.placeholder("x")
        x.meta["spec"] = self.specs["x"] = spec(*shape)
        parts = [self._call(torch.ops.aten.sin.out, (x,), spec(*shape), "sin")]
        parts.append(self._call(torch.ops.aten.cos.out, (x,), spec(*shape), "cos"))
        cat = self._call(CAT, (parts, axis), spec(*whole), "cat")
        exp = self._call(torch.ops.aten.exp.out, (cat,), spec(*whole), "exp")
        output = self.graph.output((exp,))
        output.meta["spec"] = (exp.meta["spec"],)
        self.module = GraphModule(torch.nn.Module(), self.graph)

    def _call(self, target, arguments, result, name):
        out = self.graph.call_function(memory.alloc, (((tuple(result.shape)), result.dtype),))
        node = self.graph.create_node("call_function", target, arguments, {"out": out}, name)
        out.meta["spec"] = node.meta["spec"] = self.specs[name] = result
        return node

    def read(self, alignment=16):
        return read_graph(self.module, list(self.specs.values()), None, alignment)


def test_a_graph_is_read_as_it_is():
    flow = HandMade().read().flow
    assert [(op.name, op.kind, op.reads, op.writes) for op in flow.ops] == [
        ("sin", OpKind.OPAQUE, ("x",), ("sin",)),
        ("cos", OpKind.OPAQUE, ("x",), ("cos",)),
        ("cat", OpKind.CONCAT, ("sin", "cos"), ("cat",)),
        ("exp", OpKind.OPAQUE, ("cat",), ("exp",)),
    ]
    assert flow.by_id["x"].role is Role.INPUT
    assert flow.lifetimes == {"x": (-1, 2), "sin": (0, 3), "cos": (1, 3), "cat": (2, 4), "exp": (3, 5)}


def test_a_spec_that_no_node_has_is_refused():
    made = HandMade()
    with pytest.raises(PlanningError, match=r"shape \[3\] is to be planned"):
        read_graph(made.module, [*made.specs.values(), spec(3)], None, 16)


BOTH = (Move(0, 0, 0, 0, 32), Move(1, 0, 0, 32, 32))


@pytest.mark.parametrize(
    ("shape", "axis", "moved"),
    [
        ((8,), 0, BOTH),
        ((1, 8), 1, BOTH),
        ((2, 4), 1, None),
        ((2, 4), 0, BOTH),
    ],
)
def test_the_trace_says_what_a_concat_moves(shape, axis, moved):
    made = HandMade(shape=shape, axis=axis)
    steps = {s.name: s for s in trace(made.module, None).steps}
    assert steps["cat"].moved == moved
    elided = plan(made.read().flow).elided
    assert elided == (("cat",) if moved else ())


def test_a_hand_made_graph_is_planned_rewritten_and_judged():
    made = HandMade()
    before = trace(made.module, None)
    read = made.read()
    planned = plan(read.flow)
    for s in made.specs.values():
        s.mem_id, s.mem_offset = planned.place(read.flow.root(read.ids[id(s)][0]).id)
    rewrite = Rewrite(made.module, planned.decisions)
    replay(before, trace(made.module, None, rewrite.names))
    rewrite.commit()
    made.graph.lint()
    assert not [n for n in made.graph.nodes if n.target is CAT]
    replay(before, trace(made.module, None))
    made.specs["cos"].mem_offset += 4
    with pytest.raises(ReplayError):
        replay(before, trace(made.module, None))


def test_a_rewrite_can_be_undone():
    made = HandMade()
    code = made.module.code
    planned = plan(made.read().flow)
    assert planned.elided == ("cat",)
    Rewrite(made.module, planned.decisions).undo()
    made.module.recompile()
    assert made.module.code == code


def test_the_output_node_forgets_stale_specs():
    made = HandMade()
    output = next(n for n in made.graph.nodes if n.op == "output")
    output.meta["spec"] = (stale := spec(16),)
    read = read_graph(made.module, [*made.specs.values(), stale], None, 16)
    assert read.ids[id(stale)] == ("exp",)
    refresh_output_specs(made.module)
    assert output.meta["spec"][0] is made.specs["exp"]


@pytest.mark.parametrize("reserved", [[], [0, 100]])
def test_the_algorithm_plans_synthetic_specs(reserved):
    made = HandMade(elements=5)
    made.module.input_mem_buffer_sizes = reserved
    specs = list(made.specs.values())
    for n, s in enumerate(specs):
        s.lifetime = [max(0, n - 1), n + 1]
    sizes = MemoryPlanningAlgorithmSuite([arena_algorithm])(16, specs, made.module, None, 64)
    assert sizes == [0, max(arena_algorithm(16, specs, made.module, None, 64).bufsizes)]
    assert all(s.mem_id == 1 and s.mem_offset % 16 == 0 and s.mem_offset >= sum(reserved) for s in specs)
    assert sizes[1] <= greedy(16, specs, made.module, None, 64).bufsizes[1]
    assert sizes[1] >= sum(reserved) + 64
