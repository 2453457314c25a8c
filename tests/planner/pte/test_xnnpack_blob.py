"""What XNNPACK's data says of a call's arguments is what the call does."""

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch import nn

from planner.pte.program_file import delegate_blob, parse_pte
from planner.pte.schema import DelegateCall
from planner.pte.xnnpack_blob import xnnpack_outputs
from tests.planner.executorch.models import Function, Layers
from tests.planner.pte.programs import check_replan, exported, replanned

R = torch.randn


def calls(pte):
    """Of each delegate call its data and the number of its arguments."""
    file = parse_pte(pte, "x")
    (plan,) = file.program.execution_plan
    made = [i.instr_args for i in plan.chains[0].instructions]
    return [(delegate_blob(file, plan, c.delegate_index), len(c.args)) for c in made if isinstance(c, DelegateCall)]


@pytest.mark.parametrize(("reads", "returns"), [(1, 1), (2, 1), (3, 2), (1, 3)])
def test_outputs_come_last(reads, returns):
    def f(x):
        return tuple(op(sum(x[1:], x[0])) for op in (torch.sigmoid, torch.abs, torch.neg)[:returns])

    pte = exported(Function(f), ([R(2, 3) for _ in range(reads)],), partitioner=[XnnpackPartitioner()])
    ((blob, count),) = calls(pte)
    assert count == reads + returns
    assert xnnpack_outputs(blob, count) == tuple(range(reads, count))


def test_a_quantised_call():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = (R(1, 8),)
    module = torch.export.export(nn.Linear(8, 4).eval(), inputs).module(check_guards=False)
    prepared = prepare_pt2e(module, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
    prepared(*inputs)
    edge = to_edge_transform_and_lower(
        torch.export.export(convert_pt2e(prepared), inputs), partitioner=[XnnpackPartitioner()]
    )
    found = calls(bytes(edge.to_executorch().buffer))
    assert found
    assert all(xnnpack_outputs(blob, count) == (count - 1,) for blob, count in found)


def test_other_data_says_nothing():
    """Cut anywhere, or changed in any byte of its graph: no exception, and nothing that is no argument."""
    ((blob, count),) = calls(exported(nn.Linear(4, 4), (R(1, 4),), partitioner=[XnnpackPartitioner()]))
    graph = blob[: blob.index(b"XN") + 1000]
    for at in range(len(graph)):
        for data in (blob[:at], blob[:at] + bytes([blob[at] ^ 0xFF]) + blob[at + 1 :]):
            found = xnnpack_outputs(data, count)
            assert found is None or set(found) <= set(range(count))
    assert xnnpack_outputs(blob, 1) is None


def test_a_delegate_can_be_replanned_again():
    """Its operands lie where others did before: only its data tells which it reads."""
    inputs = (R(2, 16),)
    once, _ = replanned(exported(Layers(), inputs, partitioner=[XnnpackPartitioner()]))
    report = check_replan(once, inputs, inputs)
    assert report.kept in ("", "there is nothing to gain")


class Attention(nn.Module):
    """Calls that read a cache, and what was written into it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4))
        self.register_buffer("values", torch.ones(1, 8, 4))
        self.project = nn.Linear(4, 4)

    def forward(self, x, at):
        self.keys[:, at] = self.project(x)
        self.values.index_copy_(1, at, x * 2)
        return (self.keys @ self.values.transpose(1, 2)).softmax(-1)


def test_calls_that_read_a_cache():
    runs = [(R(1, 1, 4), torch.tensor([k])) for k in range(4)]
    pte = exported(Attention().requires_grad_(False), runs[0], partitioner=[XnnpackPartitioner()])
    report = check_replan(pte, *runs)
    assert not report.kept
    assert report.after.total < report.before.total
