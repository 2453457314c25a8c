"""The pass's options, and what ExecuTorch may hand to it."""

import logging
import warnings

import pytest
import torch
from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
from executorch.exir.passes import MemoryPlanningPass
from torch.export import Dim, export

from planner.api import PlanningError
from planner.executorch import ArenaWarning, arena_algorithm, arena_planning_pass
from planner.executorch import job as job_module
from planner.executorch.compare import facts_of, lower, near, run_program, same_bits, to_program
from planner.executorch.example_models import UNet
from planner.judge.memory import ReplayError
from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.models import Accumulator, Function, TwoConvolutions

R, cat = torch.randn, torch.cat


def both(model, runs, partitioner=None, export_arguments=None, **stock_arguments):
    """Export with stock's pass and with ours, run both several times in a row, compare all with eager.

    Returns the facts of both programs, and our pass.
    """
    ours = arena_planning_pass(strict=True, **stock_arguments)
    edge = lower(model, runs[0], partitioner, **(export_arguments or {}))
    facts, outputs = [], []
    for planning_pass in (MemoryPlanningPass(**stock_arguments), ours):
        program = to_program(edge, planning_pass)
        facts.append(facts_of(program))
        outputs.append(run_program(program.buffer, *runs))
    for inputs, from_stock, from_ours in zip(runs, *outputs, strict=True):
        eager = model(*inputs)
        assert same_bits(from_stock, from_ours)
        assert near(from_ours, eager if isinstance(eager, tuple) else (eager,))
    assert facts[1].arena <= facts[0].arena
    return facts[0], facts[1], ours


def test_mutable_buffers_over_several_runs():
    stock, ours, _ = both(Accumulator(), [(R(4),) for _ in range(3)])
    assert stock.concats == 2
    assert ours.copied < stock.copied


def test_a_concat_written_back_to_a_buffer():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("k", torch.zeros(4))

        def forward(self, x):
            c = cat([x[:2].sin(), x[:2].cos()])
            self.k.copy_(c)
            return c + self.k

    both(Model(), [(R(4),) for _ in range(3)])


def test_shared_mutable_buffers():
    """Two methods, one state: what one writes the other sees."""
    model = Accumulator()

    class Reader(torch.nn.Module):
        def __init__(self, total):
            super().__init__()
            self.register_buffer("total", total)

        def forward(self, x):
            self.total.add_(0 * x)
            return cat([self.total, x]).sin()

    x = R(4)
    exported = {"forward": export(model, (x,)), "peek": export(Reader(model.total), (x,))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = to_edge(exported)
        planning_pass = arena_planning_pass(share_mutable_buffers=True, strict=True)
        config = ExecutorchBackendConfig(memory_planning_pass=planning_pass, emit_mutable_buffer_names=True)
        program = edge.to_executorch(config)
    sizes = [plan.non_const_buffer_sizes for plan in program.executorch_program.execution_plan]
    assert [len(s) for s in sizes] == [3, 3]
    assert sizes[0][2] == sizes[1][2]
    assert [r.graph for r in planning_pass.reports] == ["method 0", "method 1"]
    assert all(len(r.elided) >= len(r.of(Share.CONCAT)) > 0 for r in planning_pass.reports)


def test_share_mutable_buffers_with_one_method_runs():
    both(Accumulator(), [(R(4),) for _ in range(3)], share_mutable_buffers=True)


def test_inputs_that_are_not_planned_are_copied():
    function = Function(lambda x, y: cat([x.sin(), y, y.cos()]).exp())
    _, ours, planning_pass = both(function, [(R(4), R(4))] * 2, alloc_graph_input=False)
    assert ours.concats == 0
    (concat,) = planning_pass.reports[0].of(Share.CONCAT)
    assert (concat.outcome, concat.copied) == (Outcome.PARTIAL, 16)
    assert "is not memory-planned" in concat.reason


def test_outputs_that_are_not_planned_are_no_wholes():
    function = Function(lambda x, y: (cat([x.sin(), y.cos()]), cat([x.cos(), y.cos()]).exp()))
    _, ours, planning_pass = both(function, [(R(4), R(4))], alloc_graph_output=False)
    assert ours.concats == 1
    assert any("result" in d.reason and "not memory-planned" in d.reason for d in planning_pass.reports[0].decisions)


def test_bounded_dynamic_shapes():
    function = Function(lambda x: cat([x.sin(), x.cos()]).exp())
    shapes = {"dynamic_shapes": (({0: Dim("n", min=2, max=9)},),)}
    _, ours, planning_pass = both(function, [(R(4),), (R(7),), (R(2),)], export_arguments=shapes)
    assert ours.concats == 1
    assert "dynamic shape" in planning_pass.reports[0].decisions[0].reason


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x: (x, x.sin()), (R(8),)),
        (lambda x, y, z: x.sin(), (R(8), R(100), R(3))),
        (lambda x: x.sum() + 1, (R(7),)),
        (lambda x: torch.topk(x, 3).values * 2, (R(9),)),
        (lambda x: x.reshape(2, 4).sin().reshape(8), (R(8),)),
    ],
    ids=["an output is an input", "unused inputs", "a scalar", "an unused output", "views"],
)
def test_graphs_in_odd_shapes(function, inputs):
    both(Function(function), [inputs] * 2)


@pytest.mark.parametrize("delegate_the_concat", [False, True])
def test_xnnpack(delegate_the_concat):
    """The delegate writes its outputs straight into the concat; 64 bytes of padding stay."""
    configs = [c for c in ALL_PARTITIONER_CONFIGS if delegate_the_concat or c.__name__ != "CatConfig"]
    stock, ours, planning_pass = both(
        TwoConvolutions().eval(), [(R(1, 3, 8, 8),)] * 2, [XnnpackPartitioner(configs=configs)]
    )
    assert ours.concats == 0
    assert stock.concats == (0 if delegate_the_concat else 1)
    report = planning_pass.reports[0]
    assert report.buffer_sizes[1] == report.arenas[0].peak + 64


def test_custom_memory_ids_are_kept():
    class Banks(torch.nn.Module):
        def forward(self, x):
            return cat([x.sin(), x.cos()]).exp()

    class Assign(type(arena_planning_pass())):
        def _set_alloc_node_spec(self, graph_module):
            super()._set_alloc_node_spec(graph_module)
            for node in graph_module.graph.nodes:
                if node.op == "call_function" and "exp" in node.name and "spec" in node.meta:
                    node.meta["spec"].mem_id = 3

    planning_pass = arena_planning_pass(strict=True)
    planning_pass.__class__ = Assign
    x = R(8)
    program = to_program(lower(Banks(), (x,)), planning_pass)
    plan = program.executorch_program.execution_plan[0]
    assert plan.non_const_buffer_sizes == [0, 64, 0, 64]
    assert [a.mem_id for a in planning_pass.reports[0].arenas] == [1, 3]
    assert near(run_program(program.buffer, (x,))[0], [Banks()(x)])


def test_debug_plans_without_sharing():
    planning_pass = arena_planning_pass(debug=True)
    program = to_program(lower(Function(lambda x: cat([x.sin(), x.cos()]).exp()), (R(8),)), planning_pass)
    assert facts_of(program).concats == 1
    assert "debug" in planning_pass.reports[0].decisions[0].reason


def test_elision_can_be_switched_off():
    planning_pass = arena_planning_pass(elide_concats=False, in_place=False)
    program = to_program(lower(Function(lambda x: cat([x.sin(), x.cos()]).exp()), (R(8),)), planning_pass)
    assert facts_of(program).concats == 1


def test_a_minimum_alignment_binds_parts():
    function = Function(lambda x: cat([x[:3].sin(), x.cos()]).exp())
    edge = lower(function, (R(8),))
    for alignment, copied in ((4, 0), (16, 32)):
        planning_pass = arena_planning_pass(min_part_alignment=alignment)
        to_program(edge, planning_pass)
        assert planning_pass.reports[0].of(Share.CONCAT)[0].copied == copied


def test_a_suite_takes_the_algorithm():
    """As a member of stock's suite it packs; the suite keeps the smaller of the two."""
    model, x = Function(lambda x: sum(t.sin() for t in x.unbind(0))), R(3, 5)
    edge = lower(model, (x,))
    stock = to_program(edge)
    suite = MemoryPlanningAlgorithmSuite([greedy, arena_algorithm])
    ours = to_program(edge, MemoryPlanningPass(memory_planning_algo=suite))
    assert facts_of(ours).arena < facts_of(stock).arena
    assert same_bits(*run_program(stock.buffer, (x,)), *run_program(ours.buffer, (x,)))


def test_reports_are_logged(caplog):
    with caplog.at_level(logging.INFO, "arena"):
        to_program(lower(Function(lambda x: x.sin()), (R(8),)), arena_planning_pass())
    assert "method 0: arena 1: 32 bytes, bound 32, gap 0.0%, optimal" in caplog.text


@pytest.mark.parametrize("times", [1, 2])
def test_a_refused_plan_falls_back_step_by_step(monkeypatch, times):
    """Once: no sharing. Twice: stock's plan. Each with a warning; strict raises instead."""
    real, calls = job_module.replay, []

    def refuse(before, after):
        calls.append(after)
        if len(calls) <= times:
            raise ReplayError("made up")
        real(before, after)

    model, x = Function(lambda x: cat([x.sin(), x.cos()]).exp()), R(8)
    monkeypatch.setattr(job_module, "replay", refuse)
    planning_pass = arena_planning_pass()
    edge = lower(model, (x,))
    with pytest.warns(ArenaWarning, match="made up"):
        program = to_program(edge, planning_pass)
    report = planning_pass.reports[0]
    assert len(report.fallbacks) == times
    assert report.elided == ()
    assert bool(report.arenas) == (times == 1)
    assert near(run_program(program.buffer, (x,))[0], [model(x)])
    calls.clear()
    with pytest.raises(PlanningError, match=r"made up.*Remedy"):
        to_program(edge, arena_planning_pass(strict=True))


def test_it_raises_when_nothing_passes(monkeypatch):
    def refuse(before, after):
        raise ReplayError("made up")

    monkeypatch.setattr(job_module, "replay", refuse)
    edge = lower(Function(lambda x: x.sin()), (R(8),))
    with pytest.raises(PlanningError, match="no plan passes both judges"), pytest.warns(ArenaWarning):
        to_program(edge, arena_planning_pass())


@pytest.mark.parametrize(
    "arguments",
    [
        {"alignment": 0},
        {"min_part_alignment": 0},
        {"time_limit": -1},
        {"workers": -1},
        {"objective": "speed"},
        {"copy_weight": -1.0},
    ],
)
def test_bad_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        arena_planning_pass(**arguments)


def test_an_untested_version_is_warned_of(monkeypatch):
    from planner.executorch import planning_pass

    planning_pass._warn_if_untested.cache_clear()
    monkeypatch.setattr(planning_pass, "version", lambda _: "9.9.0")
    with pytest.warns(ArenaWarning, match=r"executorch 9\.9\.0 was not tested"):
        arena_planning_pass()
    planning_pass._warn_if_untested.cache_clear()


def test_bits_are_compared_whatever_the_strides():
    x = torch.arange(8.0).reshape(2, 4)
    for strided in (x[:1, 0], x[:, 1], x.t(), x[0, 0]):
        assert same_bits([strided], [strided.clone(memory_format=torch.contiguous_format)])
    assert not same_bits([torch.tensor([0.0])], [torch.tensor([-0.0])])


@pytest.mark.parametrize("options", [{}, {"objective": "copies"}])
def test_the_same_graph_gets_the_same_plan_for_any_number_of_workers(options):
    model, x = UNet(), torch.randn(1, 3, 32, 32)
    programs = []
    for workers in (1, 2, 5):
        planning_pass = arena_planning_pass(workers=workers, time_limit=60, **options)
        programs.append(to_program(lower(model, (x,)), planning_pass).buffer)
        assert not planning_pass.reports[-1].struck
    assert programs[0] == programs[1] == programs[2]
