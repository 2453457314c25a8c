"""Export a model twice, with stock's plan and with ours, run both on the runtime, and compare."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir import ExecutorchBackendConfig, ExecutorchProgramManager, to_edge, to_edge_transform_and_lower
from executorch.exir.schema import KernelCall
from torch.utils._pytree import tree_leaves

from planner.executorch.planning_pass import ArenaPlanningPass


@dataclass(frozen=True)
class ProgramFacts:
    """What a program's plan costs: arena bytes, instructions, concats among them, and the bytes that its concats,
    slices, splits, reshapes and clones copy."""

    arena: int
    instructions: int
    concats: int
    copied: int


@dataclass(frozen=True)
class Comparison:
    """Two exports of one model.

    Attributes
    ----------
    stock, ours : ProgramFacts
    stock_pte, ours_pte : bytes
    equal : bool
        Are the two programs' outputs the same bit for bit?
    stock_near_eager, ours_near_eager : bool
        Is it within float tolerance of eager? (The runtime's kernels are not eager's; some of stock's are wrong.)
    planning_pass : ArenaPlanningPass
        With its reports.
    """

    stock: ProgramFacts
    ours: ProgramFacts
    stock_pte: bytes
    ours_pte: bytes
    equal: bool
    stock_near_eager: bool
    ours_near_eager: bool
    planning_pass: ArenaPlanningPass

    @property
    def agree(self) -> bool:
        """Ours is right: near eager, and the same as stock's bit for bit unless stock itself is wrong."""
        return self.ours_near_eager and (self.equal or not self.stock_near_eager)


def lower(model: torch.nn.Module, inputs: Sequence[Any], partitioner: Any = None, **export_arguments: Any) -> Any:
    """Export a model to ExecuTorch's edge dialect: all that comes before memory planning.

    ``export_arguments`` go to `torch.export.export`. The result is for `to_program`, as often as wanted.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(model.eval(), tuple(inputs), **export_arguments)
        if partitioner is None:  # the same program, in less time
            return to_edge(exported)
        return to_edge_transform_and_lower(exported, partitioner=partitioner)


def to_program(edge: Any, planning_pass: Any = None) -> ExecutorchProgramManager:
    """An edge program (left as it is) to an ExecuTorch program; with stock's pass unless another is given."""
    config = ExecutorchBackendConfig()
    if planning_pass is not None:
        config = ExecutorchBackendConfig(memory_planning_pass=planning_pass)
    return copy.deepcopy(edge).to_executorch(config)


def facts_of(program: ExecutorchProgramManager) -> ProgramFacts:
    """Read the facts from a program's first method."""
    plan = program.executorch_program.execution_plan[0]
    calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
    copies = [(plan.operators[c.op_index].name, c.args[-1]) for c in calls if isinstance(c, KernelCall)]
    copies = [(name, out) for name, out in copies if name in COPIES]
    copied = sum(_nbytes(plan.values, out) for _, out in copies)
    concats = sum(name == "aten::cat" for name, _ in copies)
    return ProgramFacts(sum(plan.non_const_buffer_sizes), len(calls), concats, copied)


def _nbytes(values: Sequence[Any], index: int) -> int:
    """Bytes of a tensor, or of a list of tensors."""
    value = values[index].val
    if hasattr(value, "items"):
        return sum(_nbytes(values, i) for i in value.items)
    return int(torch.Size(value.sizes).numel()) * torch.empty((), dtype=_DTYPES[int(value.scalar_type)]).element_size()


def run_program(pte: bytes, *runs: Sequence[Any]) -> list[list[Any]]:
    """Load a program once and run it on the stock runtime with each of the inputs in turn; the outputs of each run."""
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(pte).load_method("forward")
    return [[_copy(x) for x in method.execute(tree_leaves(list(inputs)))] for inputs in runs]


def compare(model: torch.nn.Module, inputs: Sequence[Any], planning_pass: ArenaPlanningPass) -> Comparison:
    """Export, run and compare.

    Parameters
    ----------
    model : torch.nn.Module
    inputs : sequence
        Example inputs, which are also run.
    planning_pass : ArenaPlanningPass

    Returns
    -------
    Comparison
    """
    edge = lower(model, inputs)
    stock, ours = to_program(edge), to_program(edge, planning_pass)
    (from_stock,) = run_program(stock.buffer, inputs)
    (from_ours,) = run_program(ours.buffer, inputs)
    with torch.no_grad():
        eager = tree_leaves(model(*inputs))
    return Comparison(
        facts_of(stock),
        facts_of(ours),
        stock.buffer,
        ours.buffer,
        same_bits(from_stock, from_ours),
        near(from_stock, eager),
        near(from_ours, eager),
        planning_pass,
    )


def near(got: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Are two lists of outputs equal within float tolerance?"""
    return len(got) == len(wanted) and all(
        torch.allclose(x, w, rtol=1e-3, atol=1e-4) if isinstance(x, torch.Tensor) else x == w
        for x, w in zip(got, wanted, strict=True)
    )


def same_bits(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Are two lists of outputs the same bit for bit?"""
    return len(first) == len(second) and all(
        x.dtype == y.dtype and x.shape == y.shape and torch.equal(_bytes(x), _bytes(y))
        if isinstance(x, torch.Tensor)
        else x == y
        for x, y in zip(first, second, strict=True)
    )


def _bytes(x: torch.Tensor) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _copy(x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) else x


COPIES = frozenset(
    {
        *(
            f"aten::{name}_copy"
            for name in ("alias", "detach", "narrow", "select", "slice", "split", "split_with_sizes")
        ),
        *(f"aten::{name}_copy" for name in ("squeeze", "unbind", "unsqueeze")),
        *("aten::cat", "aten::clone", "dim_order_ops::_clone_dim_order"),
    }
)

_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
    15: torch.bfloat16,
}
