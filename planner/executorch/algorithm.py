"""The planner as a member of ExecuTorch's `MemoryPlanningAlgorithmSuite`: it packs, and changes no graph."""

from __future__ import annotations

from collections.abc import Sequence

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from planner import api
from planner.executorch.graph_flow import read_graph
from planner.program.sharing import Policy
from solvers.run import Options


def arena_algorithm(
    alignment: int,
    specs: Sequence[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int = 0,
    *,
    options: Options | None = None,
) -> MemoryAlgoResult:
    """An algorithm for ``MemoryPlanningAlgorithmSuite([greedy, arena_algorithm])``.

    It packs but does not share: a suite's member may not change the graph. Branches keep stock's convention, so that
    what stock gets wrong (pytorch/executorch#21490) stays wrong: use `arena_planning_pass` for control flow.

    Parameters
    ----------
    alignment, specs, graph_module, graph_signature, extra_padding
        As stock gives them.
    options : Options, optional

    Returns
    -------
    MemoryAlgoResult
    """
    graph = read_graph(graph_module, specs, graph_signature, alignment, regions=False)
    below = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    reserved = {arena: int(size) for arena, size in enumerate(below) if size}
    nothing = Policy(frozenset(), why_not="a suite's member may not change the graph")
    plan = api.plan(graph.flow, api.Request(nothing, reserved=reserved, options=options or Options(reproducible=True)))
    sizes = [0] * (max([1, *plan.peaks]) + 1)
    for arena, peak in plan.peaks.items():
        sizes[arena] = peak + extra_padding
    placed = {}
    for spec in specs:
        arena, offset = plan.place(graph.flow.root(graph.ids[id(spec)][0]).id)
        placed[spec] = SpecAllocResult(arena, None, offset)  # type: ignore[arg-type]
        spec.realign(alignment)
    return MemoryAlgoResult(placed, sizes)
