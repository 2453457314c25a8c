"""Programs that are planned already, planned anew: they load, run, give the same bits, and need no more memory."""

import copy

import pytest
import torch
from executorch.backends.xnnpack.partition.config.gemm_configs import ConvolutionConfig
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, to_edge
from torch import nn

from planner.executorch import arena_planning_pass
from planner.executorch.compare import facts_of, lower, run_program, same_bits, to_program
from planner.executorch.example_models import SinCosCat, UNet
from planner.program.share_rules import Share
from planner.pte.accesses import Kept
from planner.pte.method import Method
from planner.pte.method_flow import flow_of
from planner.pte.peaks import show
from planner.pte.program_file import parse_pte
from planner.pte.replanning import replan
from planner.pte.schema import DelegateCall, KernelCall
from solvers.problem.result import Status
from solvers.run import Options
from tests.planner.executorch.models import Accumulator, Detector, Function, Layers, TwoConvolutions
from tests.planner.pte.programs import check_replan, exported, replanned, request

R = torch.randn


@pytest.mark.parametrize(
    ("model", "inputs"),
    [(SinCosCat(), (R(64),)), (UNet(), (R(1, 3, 64, 64),)), (Detector(), (R(1, 3, 64, 64),))],
    ids=["issue 3210", "U-Net", "detector"],
)
def test_a_stock_program_reaches_the_peak_of_the_pass(model, inputs):
    edge = lower(model, inputs)
    ours = facts_of(to_program(edge, arena_planning_pass()))
    report = check_replan(bytes(to_program(edge).buffer), inputs, inputs)
    assert report.plan.status is Status.OPTIMAL
    assert (report.after.total, report.after.instructions) == (ours.arena, ours.instructions)
    assert report.after.copied == 0


@pytest.mark.parametrize(
    "model",
    [SinCosCat(), Detector(), Accumulator(), Layers()],
    ids=["issue 3210", "detector", "state", "halves overwritten"],
)
def test_our_own_program_has_nothing_to_gain(model):
    """Its views and concats share bytes already: what is shared is found in the file again, and kept."""
    inputs = {SinCosCat: (R(64),), Detector: (R(1, 3, 64, 64),), Accumulator: (R(4),), Layers: (R(2, 16),)}[type(model)]
    pte = exported(model, inputs, arena_planning_pass())
    report = check_replan(pte, inputs, inputs)
    assert report.after == report.before
    assert report.kept == "there is nothing to gain"
    assert not show(parse_pte(pte, "ours"), Options(5))[0].kept
    again, _ = replanned(pte)
    assert parse_pte(again, "again").program == parse_pte(pte, "first").program


@pytest.mark.parametrize("name", [pytest.param("densenet121", marks=pytest.mark.long), "squeezenet_v1_1"])
def test_networks_of_concats(name):
    from pytorchcv.model_provider import get_model

    inputs = (R(1, 3, 224, 224),)
    report = check_replan(exported(get_model(name, pretrained=False), inputs), inputs)
    assert report.plan.status is Status.OPTIMAL
    assert report.after.copied == 0
    assert report.after.total < report.before.total


@pytest.mark.parametrize("name", ["deep_autoencoder", "ds_cnn", "mobilenet_v1_025", "resnet8"])
def test_mlperf_tiny(name):
    from executorch.examples.models import MODEL_NAME_TO_MODEL
    from executorch.examples.models.model_factory import EagerModelFactory

    model, inputs, _, _ = EagerModelFactory.create_model(*MODEL_NAME_TO_MODEL[name])
    report = check_replan(exported(model, inputs), inputs)
    assert report.plan.status is Status.OPTIMAL


def test_a_delegate_and_a_concat_outside_it():
    inputs = (R(1, 3, 8, 8),)
    partitioner = [XnnpackPartitioner(configs=[ConvolutionConfig])]
    pte = exported(TwoConvolutions(), inputs, partitioner=partitioner)
    report = check_replan(pte, inputs, inputs)
    assert report.after.copied == 0 < report.before.copied
    before, after = (parse_pte(x, "x") for x in (pte, replanned(pte)[0]))
    assert after.segments == before.segments
    delegates = [[i for i in calls_of(f) if isinstance(i, DelegateCall)] for f in (before, after)]
    assert delegates[0] == delegates[1]
    assert delegates[0]


def test_a_quantised_model():
    import executorch.kernels.quantized  # noqa: F401  (registers its kernels with the runtime)
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = (R(1, 3, 16, 16),)
    module = torch.export.export(TwoConvolutions().eval(), inputs).module(check_guards=False)
    prepared = prepare_pt2e(module, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
    prepared(*inputs)
    edge = to_edge(
        torch.export.export(convert_pt2e(prepared), inputs), compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    report = check_replan(bytes(edge.to_executorch().buffer), inputs)
    assert report.notes == ()
    assert report.after.total < report.before.total


def test_state_lasts_from_run_to_run():
    runs = [(R(4),) for _ in range(4)]
    report = check_replan(exported(Accumulator(), runs[0]), *runs)
    assert report.after.total < report.before.total


class Cache(nn.Module):
    """A buffer with a value at the start, read in one method and written in the other."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.arange(8.0))

    def forward(self, x):
        out = torch.cat([self.cache.sin(), x.cos()]).relu()
        self.cache.add_(x)
        return out

    def fill(self, x):
        self.cache.copy_(x.sin())
        return torch.cat([x, x + 1]).exp()


@pytest.mark.parametrize("share", [False, True])
def test_two_methods_with_state(share):
    """What lies in arenas that both methods may address stays where it is."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    model, x = Cache().eval(), R(8)
    methods = {"forward": torch.export.export(model, (x,))}
    fill = copy.deepcopy(model)
    fill.forward = fill.fill
    methods["fill"] = torch.export.export(fill, (x,))
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=share), emit_mutable_buffer_names=True
    )
    pte = bytes(to_edge(methods).to_executorch(config).buffer)
    data, reports = replanned(pte)
    assert len(reports) == 2
    assert any(r.after.total < r.before.total for r in reports)
    for a, b in zip(*(parse_pte(d, "x").program.execution_plan for d in (pte, data)), strict=True):
        places = [[v.val.allocation_info for v in p.values if getattr(v.val, "allocation_info", None)] for p in (a, b)]
        shared = [[p for p in some if p.memory_id > 1] for some in places]
        assert shared[0] == shared[1]
        assert bool(shared[0]) == share
    from executorch.runtime import Runtime

    programs = [Runtime.get().load_program(d) for d in (pte, data)]
    for name in ("fill", "forward", "forward"):
        outs = [p.load_method(name).execute([x]) for p in programs]
        assert same_bits(*outs), name


def test_a_method_with_control_flow_is_left_as_it_is():
    def f(x, y):
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), [y]) + 1

    inputs = (R(4), R(4))
    report = check_replan(exported(Function(f), inputs), inputs)
    assert "control flow" in report.kept
    assert report.after == report.before


def test_options_are_kept():
    inputs = (R(1, 3, 64, 64),)
    pte = exported(Detector(), inputs)
    all_of_it = check_replan(pte, inputs)
    no_elide = check_replan(pte, inputs, share=frozenset({Share.IN_PLACE}))
    nothing = check_replan(pte, inputs, share=frozenset())
    assert all_of_it.after.instructions < no_elide.after.instructions == no_elide.before.instructions
    assert all_of_it.after.total <= no_elide.after.total <= nothing.after.total <= nothing.before.total


def test_a_part_that_cannot_lie_there_is_copied_alone():
    """The same tensor twice: one of the two is copied, by the operator that the program has already."""
    inputs = (R(64),)
    pte = exported(Function(lambda x: torch.cat([(s := x.sin()), s, x.cos()]).relu()), inputs)
    report = check_replan(pte, inputs, inputs)
    assert report.after.copied == 256 < report.before.copied == 768
    operators = [parse_pte(d, "x").program.execution_plan[0].operators for d in (pte, replanned(pte)[0])]
    assert operators[0] == operators[1]


def test_an_operator_whose_schema_is_not_known_shares_nothing():
    inputs = (R(16),)
    file = parse_pte(exported(Function(lambda x: torch.cat([x.sin(), x.cos()]).relu()), inputs), "x")
    plan = file.program.execution_plan[0]
    for op in plan.operators:
        if op.name == "aten::relu":
            op.name = "mine::relu"
    _, (report,) = replan(file, request())
    assert any("mine::relu" in note for note in report.notes)
    assert report.after.total <= report.before.total
    method = Method(file, plan)
    assert [a.mutates for a in method.accesses if a.name == "mine::relu.out"] == [(a_of(method, "mine::relu.out"))]
    assert flow_of(method).ties  # what it writes lies where something else was: it may be a view of that


def a_of(method, name):
    (a,) = [a for a in method.accesses if a.name == name]
    return tuple(dict.fromkeys(i for i in a.arguments if i in method.layouts))


def test_a_delegate_that_does_not_tell_inputs_from_outputs_is_left_alone():
    inputs = (R(1, 3, 8, 8),)
    file = parse_pte(exported(TwoConvolutions(), inputs, partitioner=[XnnpackPartitioner()]), "x")
    plan = file.program.execution_plan[0]
    plan.delegates[0].id = "SomeBackend"
    assert Method(file, plan).accesses  # its one output is new, its input an input: no doubt
    (call,) = [c for c in calls_of(file) if isinstance(c, DelegateCall)]
    call.args.reverse()
    with pytest.raises(Kept, match="does not tell its inputs from its outputs"):
        Method(file, plan)


def calls_of(file):
    return [i.instr_args for i in file.program.execution_plan[0].chains[0].instructions]


@pytest.mark.parametrize("breakage", ["lost op", "wrong order", "wrong place"])
def test_the_replay_refuses_a_wrong_program(breakage, monkeypatch):
    """The second judge looks at what will be in the file."""
    from planner.pte import replanning as module

    inputs = (R(64),)
    pte = exported(SinCosCat(), inputs)
    rewrite = module.rewrite

    def wrong(method, flow, plan):
        made = rewrite(method, flow, plan)
        steps = list(made.steps)
        if breakage == "lost op":
            steps.pop(0)
        elif breakage == "wrong order":
            steps.reverse()
        else:
            for v in made.plan.values:
                if getattr(v.val, "allocation_info", None):
                    v.val.allocation_info.memory_offset_low = 0
        return module.Rewritten(made.plan, tuple(steps), made.regions)

    monkeypatch.setattr(module, "rewrite", wrong)
    data, (report,) = replanned(pte)
    assert len([n for n in report.notes if "refused" in n]) == 2
    assert report.after == report.before
    assert same_bits(*run_program(pte, inputs), *run_program(data, inputs))


def test_instructions_are_kernel_calls_of_the_same_operators():
    inputs = (R(1, 3, 64, 64),)
    pte = exported(UNet(), inputs)
    before, after = (calls_of(parse_pte(d, "x")) for d in (pte, replanned(pte)[0]))
    assert [c.op_index for c in after if isinstance(c, KernelCall)] == [
        c.op_index for c in before if isinstance(c, KernelCall) and not is_cat(parse_pte(pte, "x"), c)
    ]


def is_cat(file, call):
    return file.program.execution_plan[0].operators[call.op_index].name == "aten::cat"
