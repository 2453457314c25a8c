"""ExecuTorch's own planners, as the wheel has them, on a problem: greedy, naive, and two of Cadence's.

They are called with the specs that a graph of these buffers would have; none of them looks at the graph then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from executorch.exir.memory_planning import greedy, naive
from executorch.exir.tensor import TensorSpec

from solvers.problem.problem import Problem

StockPlanner = Callable[[Problem], tuple[Mapping[str, int], float]]
"""From a problem of whole tensors to offsets in bytes, by id, and the seconds that planning took: making the specs
takes longer. The largest alignment serves all buffers."""


def _by_stock(algorithm: Any) -> StockPlanner:
    def place(problem: Problem) -> tuple[Mapping[str, int], float]:
        alignment, specs = _specs(problem)
        graph = _empty_graph()
        start = time.perf_counter()
        result = algorithm(alignment, specs.values(), graph, None, 0)
        return {i: result.spec_dict[spec].mem_offset for i, spec in specs.items()}, time.perf_counter() - start

    return place


def _by_cadence(kind: str) -> StockPlanner:
    def place(problem: Problem) -> tuple[Mapping[str, int], float]:
        from executorch.backends.cadence.aot import memory_planning, ops_registrations  # noqa: F401
        from executorch.backends.cadence.aot.utils import MemoryConfig

        alignment, specs = _specs(problem)
        everything = sum(b.size + alignment for b in problem.buffers)
        algorithm = getattr(memory_planning, kind)(MemoryConfig([everything], [alignment]))
        graph = _empty_graph()
        start = time.perf_counter()
        algorithm(alignment, specs.values(), graph, None, 0)
        return {i: spec.mem_offset for i, spec in specs.items()}, time.perf_counter() - start

    return place


PLANNERS: dict[str, StockPlanner] = {
    "greedy": _by_stock(greedy),
    "naive": _by_stock(naive),
    "cadence": _by_cadence("GreedyWithHeuristic"),
    "cadence-position": _by_cadence("PositionBasedGreedyWithHierarchy"),
}
"""By name."""


def _specs(problem: Problem) -> tuple[int, dict[str, TensorSpec]]:
    """The alignment, and a spec of bytes for each buffer with a lifetime as stock counts it: both ends inclusive."""
    alignment = max((b.alignment for b in problem.buffers), default=1)
    first = min((b.start for b in problem.buffers), default=0)
    specs = {}
    for b in problem.buffers:
        spec = TensorSpec(torch.uint8, torch.Size([b.size]))
        spec.lifetime = [b.start - first, b.end - 1 - first]
        spec.realign(alignment)
        specs[b.id] = spec
    return alignment, specs


def _empty_graph() -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    graph.output(())
    return torch.fx.GraphModule(torch.nn.Module(), graph)
