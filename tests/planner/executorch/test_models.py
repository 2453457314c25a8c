"""Real networks, planned and run beside stock's plan."""

import pytest
import torch
from executorch.examples.models import mlperf_tiny
from pytorchcv.model_provider import get_model
from pytorchcv.models.densenet import DenseNet

from planner.cli import main
from planner.executorch import arena_planning_pass
from planner.executorch.compare import compare
from planner.executorch.example_models import UNet
from planner.program.share_rules import Share
from planner.program.sharing import Outcome
from tests.planner.executorch.models import Detector
from tests.planner.executorch.running import run_both


def test_the_demo(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    table = capsys.readouterr().out
    assert table.count("bit for bit") == table.count("optimal") == 2
    names = {f"{model}.{plan}.pte" for model in ("issue-3210", "u-net-64x64") for plan in ("stock", "arena")}
    assert {p.name for p in (tmp_path / "out").iterdir()} == names
    assert main(["demo", "--out", str(tmp_path / "out" / "issue-3210.stock.pte")]) == 2


def check(model, inputs):
    c = compare(model.eval(), inputs, arena_planning_pass(strict=True))
    assert c.equal
    assert c.agree
    assert c.ours.arena <= c.stock.arena
    assert c.planning_pass.reports[0].status == "optimal"
    return c


def test_unet():
    c = check(UNet(), (torch.randn(1, 3, 64, 64),))
    assert c.ours.arena <= 0.8 * c.stock.arena
    assert (c.stock.concats, c.ours.concats) == (3, 0)


@pytest.mark.parametrize("name", ["DSCNNKWS", "DeepAutoEncoder", "MobileNetV1025", "ResNet8"])
def test_mlperf_tiny(name):
    model = getattr(mlperf_tiny, f"{name}Model")()
    check(model.get_eager_model(), model.get_example_inputs())


def test_squeezenet():
    model = get_model("squeezenet_v1_1", in_size=(64, 64))
    model.features.final_pool = torch.nn.AdaptiveAvgPool2d(1)
    model.output[-1] = torch.nn.AdaptiveAvgPool2d(1)
    c = check(model, (torch.randn(1, 3, 64, 64),))
    assert (c.stock.concats, c.ours.concats) == (8, 0)


@pytest.mark.parametrize("layers", [(4, 10), pytest.param((6, 12, 24, 16), marks=pytest.mark.long)], ids=str)
def test_densenet(layers):
    """Concats that share one prefix, up to 24 of them in DenseNet-121."""
    channels, width = [], 64
    for count in layers:
        channels.append([width + 32 * (k + 1) for k in range(count)])
        width = channels[-1][-1] // 2
    model = DenseNet(channels, 64, in_size=(32, 32))
    model.features.final_pool = torch.nn.AdaptiveAvgPool2d(1)
    c = check(model, (torch.randn(1, 3, 32, 32),))
    assert (c.stock.concats, c.ours.concats) == (sum(layers), 0)


def shared_by_kind(report, share):
    return [d for d in report.of(share) if d.outcome is Outcome.SHARED]


def mobile_net():
    model = get_model("mobilenetv3_small_wd2", in_size=(64, 64))
    model.features.final_pool = torch.nn.AdaptiveAvgPool2d(1)
    return model


@pytest.mark.parametrize("make", [Detector, pytest.param(mobile_net, marks=pytest.mark.long)])
def test_in_place_lowers_networks_of_many_activations(make):
    """SiLU, hard swish and squeeze-excite read each tensor twice: what in place allows is the bound with sharing."""
    model, inputs = make().eval(), (torch.randn(1, 3, 64, 64),)
    stock, without, _ = run_both(model, inputs, in_place=False)
    _, ours, report = run_both(model, inputs)
    assert ours.arena < without.arena <= stock.arena
    assert ours.arena == report.arenas[0].lower_bound
    assert report.status == "optimal"
    assert shared_by_kind(report, Share.IN_PLACE)


def test_a_detector_copies_nothing():
    stock, ours, report = run_both(Detector().eval(), (torch.randn(1, 3, 64, 64),))
    assert stock.concats == len(shared_by_kind(report, Share.CONCAT)) == 5
    assert ours.concats == 0
    assert len(shared_by_kind(report, Share.VIEW)) == 3
