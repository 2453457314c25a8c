"""One network, one variant: exported by ExecuTorch with stock's plan and with ours, and its planning problems."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from benchmarks.corpus.entry import Entry, Variant
from planner.api import Planner, Request
from planner.executorch import arena_planning_pass
from planner.executorch.compare import facts_of, to_program
from planner.executorch.graph_flow import read_graph
from planner.executorch.write_backs import WriteBacks
from planner.program.dataflow import Dataflow, Role
from solvers.problem.problem import Problem

Row = dict[str, Any]

FEWEST = 5
"""Buffers of a problem that is worth solving: a network that one delegate swallows leaves its inputs and outputs."""


@dataclass
class Exported:
    """What one export gives: its planning problems, and a row of facts."""

    problems: list[Problem]
    row: Row


def export(entry: Entry, variant: Variant) -> Exported:
    """Export a network of the corpus in one of its variants.

    Parameters
    ----------
    entry : Entry
    variant : Variant

    Returns
    -------
    Exported
        The problems (one for each arena; one more if write-backs can be moved to where the values are born), and
        arenas, instructions and bytes copied by either plan, with seconds.
    """
    torch.manual_seed(0)
    name = f"{entry.name}.{variant}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, inputs = entry.make()
        start = time.perf_counter()
        edge = lowered(model.eval().requires_grad_(False), inputs, variant)
        seconds = {"export": time.perf_counter() - start}
        capture = Capture(name)
        stock = MemoryPlanningPass(memory_planning_algo=capture)
        with timed(seconds, "to_executorch"):
            before = to_program(edge, stock)
        seconds["to_executorch"] -= capture.seconds["problems"]
        seconds["stock_planning"] = capture.seconds["greedy"]
        ours = arena_planning_pass()
        ours.run = _timed_run(ours.run, seconds)  # type: ignore[method-assign]
        after = to_program(edge, ours)
    reports = ours.reports
    row = {
        "model": entry.name,
        "variant": str(variant),
        "source": entry.source,
        "problems": [p.name for p in capture.problems],
        "stock": asdict(facts_of(before)),
        "arena": asdict(facts_of(after)),
        "status": "optimal" if all(r.status == "optimal" for r in reports) else "feasible",
        "fallbacks": [f for r in reports for f in r.fallbacks],
        "seconds": seconds,
    }
    return Exported(capture.problems, row)


def lowered(model: torch.nn.Module, inputs: Sequence[Any], variant: Variant) -> Any:
    """The edge program of a model in a variant."""
    if variant is Variant.CHANNELS_LAST:
        model = model.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    if variant in (Variant.INT8, Variant.INT8_XNNPACK):
        model = quantised(model, inputs)
    exported = torch.export.export(model, tuple(inputs))
    return to_edge_transform_and_lower(exported, partitioner=_partitioner(variant))


def _partitioner(variant: Variant) -> Any:
    if variant not in (Variant.XNNPACK, Variant.XNNPACK_NO_CONCAT, Variant.INT8_XNNPACK):
        return None
    from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
    from executorch.backends.xnnpack.partition.config.generic_node_configs import CatConfig
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    without = variant is Variant.XNNPACK_NO_CONCAT
    return [XnnpackPartitioner(configs=[c for c in ALL_PARTITIONER_CONFIGS if not (without and c is CatConfig)])]


def quantised(model: torch.nn.Module, inputs: Sequence[Any]) -> torch.nn.Module:
    """The model in eight bits, by PT2E with XNNPACK's quantizer, calibrated on the example inputs."""
    import executorch.kernels.quantized  # noqa: F401  its out variants
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    graph = torch.export.export(model, tuple(inputs)).module(check_guards=False)
    prepared = prepare_pt2e(graph, XNNPACKQuantizer().set_global(get_symmetric_quantization_config()))
    prepared(*inputs)
    return convert_pt2e(prepared)


@dataclass
class Capture:
    """Stock's algorithm, which also writes down what there is to plan.

    Attributes
    ----------
    name : str
        Of the problems.
    problems : list of Problem
    seconds : dict
        Spent on stock's greedy, and here.
    """

    name: str
    problems: list[Problem] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"greedy": 0.0, "problems": 0.0})
    __name__ = "greedy"

    def __call__(
        self,
        alignment: int,
        specs: Sequence[TensorSpec],
        module: GraphModule,
        signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        with timed(self.seconds, "problems"):
            self.write_down(list(specs), module, signature, alignment)
        with timed(self.seconds, "greedy"):
            return MemoryPlanningAlgorithmSuite()(alignment, specs, module, signature, extra_padding)  # type: ignore[arg-type]

    def write_down(
        self, specs: list[TensorSpec], module: GraphModule, signature: ExportGraphSignature | None, alignment: int
    ) -> None:
        """Add the problems of a graph, as it is, and with write-backs moved if that changes anything."""
        self.problems += problems_of(self.name, read_graph(module, specs, signature, alignment).flow)
        moves = WriteBacks(module, signature)
        if moves.moved:
            self.problems += problems_of(f"{self.name}.moved", read_graph(module, specs, signature, alignment).flow)
        moves.undo()


def problems_of(name: str, flow: Dataflow) -> list[Problem]:
    """The planning problem of each arena, with all sharing as optional colocations and ops as labels."""
    planner = Planner(flow, Request())
    made_by = {t: op.target for op in flow.ops for t in op.writes}
    roles = {t.id: str(t.role) for t in flow.tensors if t.role is not Role.VALUE}
    out = []
    arenas = planner.problems(planner.sharing.ties)
    for arena, problem in arenas.items():
        labelled = [replace(b, label=made_by.get(b.id) or roles.get(b.id)) for b in problem.buffers]
        full = name if len(arenas) == 1 else f"{name}.arena{arena}"
        out.append(Problem(labelled, problem.colocations, name=full))
    return [p for p in out if len(p.buffers) >= FEWEST]


@contextmanager
def timed(seconds: dict[str, float], what: str) -> Any:
    """Add the seconds of the block."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[what] = seconds.get(what, 0.0) + time.perf_counter() - start


def _timed_run(run: Callable[..., Any], seconds: dict[str, float]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        with timed(seconds, "arena_planning"):
            return run(*arguments, **named)

    return wrapped
