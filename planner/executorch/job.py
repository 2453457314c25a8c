"""One graph: plan it, write the plan to its specs, judge the program as it will run; fall back to less if refused."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from planner import api
from planner.executorch.branches import move_branches, shift_branches
from planner.executorch.graph import ReadGraph, read_graph
from planner.executorch.report import GraphReport, report_of
from planner.executorch.rewrite import Elision, refresh_output_specs
from planner.executorch.trace import trace
from planner.replay import ReplayError, Trace, replay
from solvers.buffers import ProblemError
from solvers.run import Options
from solvers.verify import VerificationError

REFUSALS = (api.PlanningError, ProblemError, ReplayError, VerificationError)


class ArenaWarning(UserWarning):
    """The pass gave something up, or runs on ground that was not tested."""


@dataclass(frozen=True)
class Settings:
    """What the user asked of the pass. ``why_not`` is the reason that concats get where sharing is off."""

    options: Options
    elide_concats: bool
    why_not: str
    strict: bool
    min_part_alignment: int


@dataclass(frozen=True)
class Call:
    """The arguments with which stock calls a planning algorithm."""

    alignment: int
    specs: Sequence[TensorSpec]
    module: GraphModule
    signature: ExportGraphSignature | None
    extra_padding: int


class Job:
    """The planning of one graph.

    Parameters
    ----------
    name : str
        For the report.
    call : Call
    settings : Settings

    Attributes
    ----------
    before : Trace
        The program as it was.
    elided : bool
        Are there concats that no longer run?
    """

    def __init__(self, name: str, call: Call, settings: Settings) -> None:
        self.name = name
        self.call = call
        self.settings = settings
        self.before: Trace = trace(call.module, call.signature, control_flow_memory=False)
        self.elided = False
        self.refused: list[str] = []

    def run(self) -> GraphReport:
        """Plan with sharing, without, or as stock does: the first that passes both judges.

        Raises
        ------
        planner.api.PlanningError
            If none does; in strict mode, if the first does not.
        """
        call = self.call
        try:
            graph = read_graph(call.module, call.specs, call.signature, call.alignment)
        except REFUSALS as error:
            self._fall_back(f"the graph cannot be read: {error}")
            return self._stock()
        refresh_output_specs(call.module)
        for share in (True, False) if self.settings.elide_concats else (False,):
            try:
                return self._attempt(graph, share)
            except REFUSALS as error:
                self._fall_back(f"the plan {'with' if share else 'without'} sharing was refused: {error}")
        return self._stock()

    def _attempt(self, graph: ReadGraph, share: bool) -> GraphReport:
        call = self.call
        plan = api.plan(
            graph.flow,
            elide_concats=share,
            min_part_alignment=self.settings.min_part_alignment,
            why_not=self.settings.why_not,
            options=self.settings.options,
        )
        self._write(plan, graph)
        self._judge(plan)
        sizes = [0] * (max([1, *plan.peaks]) + 1)
        for arena, peak in plan.peaks.items():
            sizes[arena] = peak + call.extra_padding
        return report_of(self.name, plan, sizes, self.refused)

    def _write(self, plan: api.Plan, graph: ReadGraph) -> None:
        """Write the offsets to the specs."""
        for spec in self.call.specs:
            tensor = graph.flow.root(graph.ids[id(spec)][0])
            if tensor.arena is None:
                continue  # a stale spec of a buffer that is planned later
            arena, offset = plan.place(tensor.id)
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = arena, offset, None
            spec.realign(1)  # stock's own verifier rounds sizes up to this; ours are exact

    def _judge(self, plan: api.Plan) -> None:
        """The second judge, on the program as it will run. Once it agrees there is no way back."""
        module = self.call.module
        moves = move_branches(plan, module)
        elision = Elision(module, plan.sharing.elided)
        try:
            replay(self.before, trace(module, self.call.signature, elision.names))
        except ReplayError:
            elision.undo()
            shift_branches(module, moves, -1)
            raise
        self.elided = bool(elision.names)
        elision.commit()

    def _fall_back(self, why: str) -> None:
        if self.settings.strict:
            raise api.PlanningError(f"{why}. Remedy: strict=False falls back to less sharing or to stock's plan")
        warnings.warn(f"arena planner: {why}", ArenaWarning, stacklevel=4)
        self.refused.append(why)

    def _stock(self) -> GraphReport:
        call = self.call
        suite = MemoryPlanningAlgorithmSuite()
        sizes = suite(call.alignment, call.specs, call.module, call.signature, call.extra_padding)  # type: ignore[arg-type]
        try:
            replay(self.before, trace(call.module, call.signature))
        except ReplayError as error:
            raise api.PlanningError(
                f"no plan passes both judges: {'; '.join(self.refused)}; and stock's plan is wrong: {error}"
            ) from error
        return GraphReport(self.name, (), (), tuple(self.refused), tuple(sizes), 0.0)
