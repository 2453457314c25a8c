"""The pass: plan every graph, judge each plan twice, write it back.

In place of stock's pass::

    ExecutorchBackendConfig(memory_planning_pass=arena_planning_pass())

It fills the gap that stock planning leaves: the arena is proven smallest, and concats whose parts can be written in
place are gone. If a judge refuses a plan it falls back to less: no sharing, then stock's plan, with a warning.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from executorch.exir.memory_planning import MemoryAlgoResult, MemoryPlanningAlgorithmSuite, SpecAllocResult
from executorch.exir.pass_base import PassResult
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from planner import api
from planner.executorch import nodes
from planner.executorch.graph import ReadGraph, read_graph, region_name
from planner.executorch.report import GraphReport, report_of
from planner.executorch.rewrite import Elision, refresh_output_specs
from planner.executorch.trace import trace
from planner.replay import ReplayError, Trace, replay
from planner.sharing import Decision
from solvers.search import Options
from solvers.verify import VerificationError

log = logging.getLogger("arena")

TESTED = "1.5."
"""ExecuTorch versions with this prefix are tested."""


class ArenaWarning(UserWarning):
    """The pass gave something up, or runs on ground that was not tested."""


class ArenaPlanningPass(MemoryPlanningPass):
    """Stock's pass with another planner; made by `arena_planning_pass`.

    Attributes
    ----------
    reports : list of GraphReport
        One per graph, in the order of planning; branches before the method that they belong to.
    """

    def __init__(
        self,
        options: Options,
        elide_concats: bool,
        debug: bool,
        strict: bool,
        min_part_alignment: int,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        share_mutable_buffers: bool,
        alignment: int,
    ) -> None:
        super().__init__(
            self._plan_graph,
            alloc_graph_input=alloc_graph_input,
            alloc_graph_output=alloc_graph_output,
            alloc_mutable_buffers=alloc_mutable_buffers,
            share_mutable_buffers=share_mutable_buffers,
            alignment=alignment,
        )
        self.options = options
        self.elide_concats = elide_concats and not debug
        self.why_not = "debug: intermediate outputs stay valid" if debug else "elision is switched off"
        self.strict = strict
        self.min_part_alignment = min_part_alignment
        self.reports: list[GraphReport] = []
        self._methods = 0
        self._method: GraphModule | None = None

    def run(self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None) -> PassResult:
        """Plan a method.

        Raises
        ------
        planner.api.PlanningError
            If no plan passes both judges; with ``strict``, also where a fallback would be taken.
        """
        self._method = graph_module
        self.allow_lifetime_and_storage_overlap = False
        self._before: Trace | None = None
        try:
            result = super().run(graph_module, graph_signature)
            if self._before is not None:
                replay(self._before, trace(graph_module, graph_signature))
        except ReplayError as error:
            raise api.PlanningError(
                f"the planned program would not compute what it did: {error}. Please report this, and use stock's "
                f"MemoryPlanningPass for this model"
            ) from error
        finally:
            self._method, self._before = None, None
            self._methods += 1
        return result

    def _plan_graph(
        self,
        alignment: int,
        specs: Sequence[TensorSpec],
        module: GraphModule,
        signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        """Stock calls this for every graph, branches first, and for every device."""
        specs = list(specs)
        is_method = module is self._method
        before = trace(module, signature, control_flow_memory=False)
        if is_method and self._before is None:
            self._before = before
        name = f"method {self._methods}" if is_method else f"branch in method {self._methods}"
        graph = read_graph(module, specs, signature, alignment)
        refresh_output_specs(module)
        refused: list[str] = []
        for share in (True, False) if self._shares(is_method) else (False,):
            try:
                plan = self._plan(graph, share, is_method)
                sizes = self._apply(plan, graph, specs, module, extra_padding)
                self._judge(before, module, signature, plan)
            except (api.PlanningError, ReplayError, VerificationError) as error:
                self._fall_back(refused, f"{'sharing' if share else 'plan without sharing'} was refused: {error}")
                continue
            report = report_of(name, plan, sizes, refused)
            break
        else:
            sizes = self._stock(alignment, specs, module, signature, extra_padding)
            self._check_stock(before, module, signature, refused)
            stays = tuple(Decision(d.op, False, d.nbytes, "stock's plan was taken") for d in plan.sharing.decisions)
            report = GraphReport(name, (), stays, tuple(refused), tuple(sizes), 0.0)
        self.reports.append(report)
        log.info("%s", report)
        return sizes

    def _shares(self, is_method: bool) -> bool:
        return self.elide_concats and is_method

    def _plan(self, graph: ReadGraph, share: bool, is_method: bool) -> api.Plan:
        return api.plan(
            graph.flow,
            elide_concats=share,
            min_part_alignment=self.min_part_alignment,
            why_not=self.why_not if is_method else "inside a branch of control flow",
            options=self.options,
        )

    def _apply(
        self, plan: api.Plan, graph: ReadGraph, specs: Sequence[TensorSpec], module: GraphModule, extra_padding: int
    ) -> list[int]:
        """Write the offsets to the specs and move the branches' memory to its place."""
        for spec in specs:
            tensor = graph.flow.root(graph.ids[id(spec)][0])
            if tensor.arena is None:
                continue  # a stale spec of a buffer that is planned later
            arena, offset = plan.place(tensor.id)
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = arena, offset, None
            spec.realign(1)  # stock's own verifier rounds sizes up to this; ours are exact
        self._moved = _move_branches(plan, module)
        sizes = [0] * (max([1, *plan.peaks]) + 1)
        for arena, peak in plan.peaks.items():
            sizes[arena] = peak + extra_padding
        return sizes

    def _judge(
        self, before: Trace, module: GraphModule, signature: ExportGraphSignature | None, plan: api.Plan
    ) -> None:
        """The second judge, on the program as it will run; then there is no way back."""
        elision = Elision(module, plan.sharing.elided)
        try:
            replay(before, trace(module, signature, elision.names))
        except ReplayError:
            elision.undo()
            _shift_branches(module, self._moved, -1)
            raise
        if elision.names:
            self.allow_lifetime_and_storage_overlap = True  # parts lie inside their wholes
        elision.commit()

    def _fall_back(self, refused: list[str], why: str) -> None:
        if self.strict:
            raise api.PlanningError(f"{why}. Remedy: strict=False falls back to less sharing or stock's plan")
        warnings.warn(f"arena planner: {why}", ArenaWarning, stacklevel=4)
        refused.append(why)

    def _stock(
        self,
        alignment: int,
        specs: Sequence[TensorSpec],
        module: GraphModule,
        signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        for spec in specs:
            spec.mem_offset = None
        return MemoryPlanningAlgorithmSuite()(alignment, specs, module, signature, extra_padding)  # type: ignore[arg-type]

    def _check_stock(
        self, before: Trace, module: GraphModule, signature: ExportGraphSignature | None, refused: list[str]
    ) -> None:
        try:
            replay(before, trace(module, signature))
        except ReplayError as error:
            raise api.PlanningError(
                f"no plan passes both judges: {'; '.join(refused)}; and stock's plan is wrong: {error}"
            ) from error


def arena_planning_pass(
    time_limit: float = 10.0,
    elide_concats: bool = True,
    workers: int = 0,
    alignment: int = 16,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    share_mutable_buffers: bool = False,
    min_part_alignment: int = 1,
    seed: int = 0,
    debug: bool = False,
    strict: bool = False,
) -> ArenaPlanningPass:
    """A memory planning pass for ``ExecutorchBackendConfig(memory_planning_pass=...)``.

    Parameters
    ----------
    time_limit : float
        Seconds of search per graph; most need milliseconds.
    elide_concats : bool
        Let the parts of concats be written where the concat would have copied them.
    workers : int
        Threads; 0 means one per core.
    alignment : int
        Bytes, of every tensor that is not part of another.
    alloc_graph_input, alloc_graph_output, alloc_mutable_buffers, share_mutable_buffers : bool
        As in stock's ``MemoryPlanningPass``.
    min_part_alignment : int
        Bytes; a part lies at a multiple of this and of its element size, or the concat runs. For targets whose kernels
        want aligned data.
    seed : int
        Of the search.
    debug : bool
        Plan without sharing, so that intermediate outputs stay valid for the Inspector.
    strict : bool
        Raise where the pass would fall back with a warning.

    Returns
    -------
    ArenaPlanningPass
        Its ``reports`` say afterwards what was done.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    for name, value in (("alignment", alignment), ("min_part_alignment", min_part_alignment)):
        if value < 1:
            raise ValueError(f"{name} is {value}: it must be at least 1")
    if time_limit < 0 or workers < 0:
        raise ValueError(f"time_limit is {time_limit}, workers is {workers}: neither may be negative")
    _warn_if_untested()
    return ArenaPlanningPass(
        Options(time_limit, workers, seed),
        elide_concats,
        debug,
        strict,
        min_part_alignment,
        alloc_graph_input,
        alloc_graph_output,
        alloc_mutable_buffers,
        share_mutable_buffers,
        alignment,
    )


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
    plan = api.plan(graph.flow, elide_concats=False, reserved=reserved, options=options)
    sizes = [0] * (max([1, *plan.peaks]) + 1)
    for arena, peak in plan.peaks.items():
        sizes[arena] = peak + extra_padding
    placed = {}
    for spec in specs:
        arena, offset = plan.place(graph.flow.root(graph.ids[id(spec)][0]).id)
        placed[spec] = SpecAllocResult(arena, None, offset)  # type: ignore[arg-type]
        spec.realign(alignment)
    return MemoryAlgoResult(placed, sizes)


def _move_branches(plan: api.Plan, module: GraphModule) -> dict[str, dict[int, int]]:
    """Shift the specs of every control-flow node's branches to the memory that the plan gives the node."""
    moves: dict[str, dict[int, int]] = {}
    for node in module.graph.nodes:
        if nodes.is_control_flow(node):
            for arena in plan.peaks:
                try:
                    _, offset = plan.place(region_name(node, arena))
                except KeyError:
                    continue
                moves.setdefault(node.name, {})[arena] = offset
    _shift_branches(module, moves, 1)
    return moves


def _shift_branches(module: GraphModule, moves: dict[str, dict[int, int]], sign: int) -> None:
    for node in module.graph.nodes:
        if node.name in moves:
            seen: set[int] = set()
            for sub in nodes.branches(module, node):
                for inner in (m for m in sub.modules() if isinstance(m, GraphModule)):
                    for spec in (nodes.root_spec(s) for n in inner.graph.nodes for s in nodes.specs_of(n)):
                        if id(spec) not in seen and spec.mem_offset is not None and spec.mem_id is not None:
                            seen.add(id(spec))
                            spec.mem_offset += sign * moves[node.name].get(spec.mem_id, 0)


@functools.cache
def _warn_if_untested() -> None:
    if not (installed := version("executorch")).startswith(TESTED):
        warnings.warn(
            f"arena planner: executorch {installed} was not tested; {TESTED}x was. Every plan is still judged twice.",
            ArenaWarning,
            stacklevel=3,
        )
