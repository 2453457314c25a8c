"""Programs in banks: on the stock runtime, with what the banks hold, what is pinned, and what does not fit."""

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir.banked_memory_planning import Bank as StockBank
from executorch.exir.banked_memory_planning import TargetMemoryMap

from planner.api import BanksExceeded, PlanningError
from planner.executorch import ArenaWarning, arena_planning_pass
from planner.executorch import job as job_module
from planner.executorch.compare import lower, near, run_program, same_bits, to_program
from planner.executorch.example_models import SinCosCat, UNet
from planner.judge.memory import ReplayError
from solvers.banks.bank import Bank
from solvers.problem.result import Status
from tests.planner.executorch.models import Accumulator, Function, TwoConvolutions
from tests.planner.executorch.random_check import check
from tests.planner.executorch.running import run_both
from tests.planner.executorch.test_control_flow import CASES, INPUTS

R, cat = torch.randn, torch.cat


def sizes_of(program):
    return list(program.executorch_program.execution_plan[0].non_const_buffer_sizes)


def placed(program):
    """By mem_id, how many tensors lie there."""
    values = program.executorch_program.execution_plan[0].values
    infos = [getattr(v.val, "allocation_info", None) for v in values]
    return [info.memory_id for info in infos if info is not None]


@pytest.mark.parametrize(
    "banks",
    [
        TargetMemoryMap([StockBank("sram", 2**16, 2), StockBank("dram", 2**20, 5)]),
        [Bank("sram", 2**16, 5, 64), Bank("dram", 2**20, 2)],
        [Bank("tcm", 2**15, 3), Bank("sram", 2**16, 1), Bank("dram", 2**20, 2, 32)],
    ],
    ids=["TargetMemoryMap", "aligned", "three"],
)
def test_a_network_in_banks_runs(banks):
    model, x = UNet(8).eval(), (R(1, 3, 32, 32),)
    edge = lower(model, x)
    planning_pass = arena_planning_pass(strict=True, banks=banks)
    program = to_program(edge, planning_pass)
    (report,) = planning_pass.reports
    given = {b.mem_id: b for b in getattr(banks, "banks", banks)}
    sizes = sizes_of(program)
    assert list(report.buffer_sizes) == sizes
    assert len(sizes) == max(given) + 1
    assert all(size <= given[n].size if n in given else size == 0 for n, size in enumerate(sizes))
    assert {a.mem_id: (a.bank, a.capacity) for a in report.arenas} == {n: (b.name, b.size) for n, b in given.items()}
    assert len(set(placed(program))) > 1
    for result in run_program(program.buffer, x, x):
        assert same_bits(result, run_program(to_program(edge).buffer, x)[0])


def test_concats_are_elided_in_banks():
    banks = [Bank("sram", 2**20, 1), Bank("dram", 2**20, 2)]
    stock, ours, report = run_both(SinCosCat(), (R(64),), (R(64),), banks=banks)
    assert (stock.concats, ours.concats) == (1, 0)
    assert report.status is Status.OPTIMAL
    assert report.buffer_sizes == (0, 512, 0)  # all in the first, as without banks


def test_state_over_several_runs():
    runs = [(R(4),) for _ in range(3)]
    _, _, report = run_both(Accumulator(), *runs, banks=[Bank("sram", 64, 1), Bank("dram", 999, 2)])
    assert 0 < report.buffer_sizes[1] <= 64
    assert report.buffer_sizes[2] > 0


@pytest.mark.parametrize("name", CASES)
def test_control_flow(name):
    """The branches' memory lies in banks as well; every way through, several times in a row."""
    model = Function(CASES[name])
    banks = [Bank("sram", 48, 3), Bank("dram", 4096, 1)]
    planning_pass = arena_planning_pass(strict=True, banks=banks)
    program = to_program(lower(model, (INPUTS[0],)), planning_pass)
    runs = [(x,) for x in INPUTS * 2]
    for (x,), got in zip(runs, run_program(program.buffer, *runs), strict=True):
        assert near(got, torch.utils._pytree.tree_leaves(model(x)))
    sizes = sizes_of(program)
    assert len(sizes) == 4
    assert sizes[1] <= 4096
    assert sizes[2] == 0
    assert 0 < sizes[3] <= 48


@pytest.mark.parametrize("given", [False, True])
def test_a_result_of_a_branch_that_is_returned(given):
    """Planned, or where the caller wants it."""

    def model(x):
        return torch.cond(x[0] > 0, lambda a: cat([a * 2, a.sin()]), lambda a: cat([-a, a]), (x + 1,))

    runs = [(s * torch.arange(1.0, 5),) for s in (1, -1, 1, -1)]
    banks = [Bank("sram", 64, 2), Bank("dram", 999, 4)]
    _, _, report = run_both(model, *runs, alloc_graph_output=not given, stock_is_wrong=True, banks=banks)
    assert report.buffer_sizes[1] == report.buffer_sizes[3] == 0
    assert len(report.buffer_sizes) == 5


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed):
    """Branches, state, views, concats: the same bits as stock's, in banks that hold but a part."""
    banks = [Bank("fast", (64, 256, 1024)[seed % 3], 3, (None, 64)[seed % 2]), Bank("slow", 2**20, 1)]
    check(seed, banks=banks, preserve_inputs=True)  # in two banks there may be more bytes than in stock's arena


def test_padding_for_xnnpack_counts():
    x = (R(1, 3, 8, 8),)
    edge = lower(TwoConvolutions().eval(), x, [XnnpackPartitioner()])
    stock = to_program(edge)
    whole = arena_planning_pass()
    to_program(edge, whole)
    peak = whole.reports[0].arenas[0].peak
    for room, banks_used in ((64, 1), (63, 2)):
        planning_pass = arena_planning_pass(strict=True, banks=[Bank("a", peak + room, 1), Bank("b", 10 * peak, 2)])
        program = to_program(edge, planning_pass)
        sizes = sizes_of(program)
        assert sizes[1] <= peak + room
        assert sum(size > 0 for size in sizes) == banks_used
        assert same_bits(run_program(program.buffer, x)[0], run_program(stock.buffer, x)[0])


def pinning(name, mem_id, **arguments):
    """A pass in which a custom pool pass came before: the outputs of some ops have their mem_id."""

    class Assign(type(arena_planning_pass())):
        def _set_alloc_node_spec(self, graph_module):
            super()._set_alloc_node_spec(graph_module)
            for node in graph_module.graph.nodes:
                if node.op == "call_function" and name in node.name and "spec" in node.meta:
                    node.meta["spec"].mem_id = mem_id

    planning_pass = arena_planning_pass(strict=True, **arguments)
    planning_pass.__class__ = Assign
    return planning_pass


@pytest.mark.parametrize("mem_id", [2, 4, 7])
def test_pins_are_honoured(mem_id):
    """In the slow bank, in the fast one, and in one that no bank is: that alone is what lies there."""
    model, x = Function(lambda x: cat([x.sin(), x.cos()]).exp()), R(8)
    banks = [Bank("sram", 4096, 4), Bank("dram", 4096, 2)]
    planning_pass = pinning("exp", mem_id, banks=banks)
    program = to_program(lower(model, (x,)), planning_pass)
    sizes = sizes_of(program)
    assert len(sizes) == max(4, mem_id) + 1
    assert {n for n, size in enumerate(sizes) if size} == {4, mem_id}
    assert mem_id == 4 or sizes[mem_id] == 64
    assert near(run_program(program.buffer, (x,))[0], [model(x)])


def test_a_pin_that_does_not_fit():
    edge = lower(Function(lambda x: x.sin().exp()), (R(8),))
    with pytest.raises(BanksExceeded, match=r"required 32 bytes, available 16 in bank 'sram', excess 16.*exp"):
        to_program(edge, pinning("exp", 1, banks=[Bank("sram", 16, 1), Bank("dram", 4096, 2)]))


def test_banks_that_are_too_small_say_what_is_missing():
    edge = lower(UNet(8).eval(), (R(1, 3, 32, 32),))
    whole = arena_planning_pass()
    to_program(edge, whole)
    peak = whole.reports[0].arenas[0].peak
    banks = [Bank("sram", peak // 8, 1), Bank("dram", peak * 3 // 4, 2)]
    with pytest.raises(BanksExceeded, match=r"method 0: .*capacity exceeded: required .* in step ") as raised:
        to_program(edge, arena_planning_pass(banks=banks))
    excess = raised.value.excess
    assert excess.excess == excess.required - excess.available > 0
    for word in (excess.required, excess.available, excess.excess, repr(excess.parts[0][0]), *map(repr, excess.banks)):
        assert str(word) in str(raised.value)
    larger = [b if b.name not in excess.banks else Bank(b.name, b.size + excess.excess, b.mem_id) for b in banks]
    to_program(edge, arena_planning_pass(banks=larger, strict=True))


def test_a_refused_plan_never_becomes_a_plan_without_banks(monkeypatch):
    def refuse(before, after):
        raise ReplayError("made up")

    monkeypatch.setattr(job_module, "replay", refuse)
    edge = lower(Function(lambda x: x.sin()), (R(8),))
    with pytest.raises(PlanningError, match=r"no plan in banks passes.*made up"), pytest.warns(ArenaWarning):
        to_program(edge, arena_planning_pass(banks=[Bank("a", 99, 1)]))


def test_the_second_attempt_is_not_pinned_by_the_first(monkeypatch):
    """The first plan wrote its mem_ids into the graph; they are no pins."""
    real, calls = job_module.replay, []

    def refuse(before, after):
        calls.append(after)
        if len(calls) == 1:
            raise ReplayError("made up")
        real(before, after)

    monkeypatch.setattr(job_module, "replay", refuse)
    edge = lower(Function(lambda x: cat([x.sin(), x.cos()]).exp()), (R(8),))
    planning_pass = arena_planning_pass(banks=[Bank("a", 64, 1), Bank("b", 999, 2)])
    with pytest.warns(ArenaWarning, match="made up"):
        program = to_program(edge, planning_pass)
    alone = arena_planning_pass(
        banks=[Bank("a", 64, 1), Bank("b", 999, 2)], elide_concats=False, elide_views=False, in_place=False
    )
    assert sizes_of(program) == sizes_of(to_program(edge, alone))


def test_devices_other_than_the_cpu_are_refused():
    from executorch.exir.backend.test.device_util import DeviceAwarePartitioner

    edge = lower(Function(lambda x, y: x + y), (R(8), R(8)), [DeviceAwarePartitioner("cuda:0")])
    with pytest.raises(PlanningError, match="in the memory of cuda: banks are the CPU's"):
        to_program(edge, arena_planning_pass(banks=[Bank("a", 2**20, 1)]))


@pytest.mark.parametrize(
    ("banks", "complaint"),
    [
        ([], "there are no banks"),
        ([Bank("a", 0, 1)], "bank 'a': size is 0"),
        ([Bank("a", 9, 1, 24)], "alignment is 24: it must be a multiple of the graph's, 16"),
        ([Bank("a", 9, 1), Bank("a", 9, 2)], "must differ"),
    ],
)
def test_bad_banks_are_refused(banks, complaint):
    with pytest.raises(ValueError, match=complaint):
        arena_planning_pass(banks=banks)


def test_shared_mutable_buffers_are_refused():
    with pytest.raises(ValueError, match="share_mutable_buffers does not go with banks"):
        arena_planning_pass(banks=[Bank("a", 9, 1)], share_mutable_buffers=True)
