"""One graph: plan it, write the plan to its specs, judge the program as it will run; fall back to less if refused."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, update_all_tensors_lifetime
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import ALIGNMENT, TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from planner import api
from planner.api import REFUSALS
from planner.executorch import target_banks
from planner.executorch.branches import move_branches, put_back, settle_views
from planner.executorch.graph_flow import ReadGraph, read_graph
from planner.executorch.graph_rewrite import Rewrite, refresh_output_specs
from planner.executorch.graph_trace import trace
from planner.executorch.pass_report import GraphReport, report_of
from planner.executorch.write_backs import WriteBacks
from planner.judge.memory import ReplayError, UnjudgedError
from planner.judge.replay import Trace, replay
from planner.lock.lock_file import Lock, LockError
from planner.program.dataflow import Role
from planner.progress import log_progress
from solvers.problem.result import Progress


class ArenaWarning(UserWarning):
    """The pass gave something up, or runs on ground that was not tested."""


@dataclass(frozen=True)
class Settings:
    """What the user asked of the pass."""

    request: api.Request = field(default_factory=api.Request)
    strict: bool = False
    move_write_backs: bool = True
    lock: Lock | None = None
    progress: Callable[[str, Progress], None] | None = None


@dataclass(frozen=True)
class Call:
    """The arguments with which stock calls a planning algorithm; ``branch`` if for a submodule of control flow;
    ``anywhere`` is the mem_id that stands for any bank, if there are banks."""

    alignment: int
    specs: Sequence[TensorSpec]
    module: GraphModule
    signature: ExportGraphSignature | None
    extra_padding: int
    branch: bool = False
    anywhere: int = 0

    @property
    def device(self) -> str:
        """The device whose memory is planned; empty for the CPU, or for all of them in one.

        Stock plans one device after the other and renumbers their arenas afterwards, so that only the whole can be
        judged, at the end of the pass.
        """
        kinds = {(s.device, s.device_index) for s in self.specs}
        if (DeviceType.CPU, 0) in kinds:
            return ""
        return ", ".join(f"{kind.name.lower()}:{index}" for kind, index in sorted(kinds, key=str))


class GraphJob:
    """The planning of one graph.

    Parameters
    ----------
    name : str
        For the report.
    call : Call
    settings : Settings

    Attributes
    ----------
    before : Trace or None
        The program as it was; None if it cannot be judged: then the plan is stock's.
    changed : bool
        Do tensors lie where stock's own verifier does not expect them?
    """

    def __init__(self, name: str, call: Call, settings: Settings) -> None:
        self.name = name
        self.call = call
        self.settings = settings
        self.before: Trace | None = None
        self.changed = False
        self.refused: list[str] = []
        self.specs = list(call.specs)
        self.pins: target_banks.Pins = {id(s): s.mem_id for s in call.specs}

    def run(self) -> GraphReport:
        """Plan with sharing, without, or as stock does: the first that passes both judges.

        Raises
        ------
        planner.api.PlanningError
            If none does; in strict mode, if the first does not. `BanksExceeded` if there are banks, and they are too
            small, `LockError` if the lock file is frozen and has no plan: no fallback would help.
        """
        try:
            self.before = trace(self.call.module, self.call.signature, control_flow_memory=False)
        except ReplayError as error:
            self._fall_back(f"the program cannot be judged: {error}")
            return self._stock()
        if self.settings.request.banks:
            target_banks.check_device(self.specs)
        if not self.call.device and (copies := settle_views(self.call.module, self.specs, self.call.branch)):
            self.specs += copies
            update_all_tensors_lifetime(self.call.module, self.call.signature)
        output = self.call.module.graph.output_node()
        stale = output.meta.get("spec")
        for share in (True, False) if self._may_share() else (False,):
            write_backs = WriteBacks(self.call.module, self.call.signature) if share and self._may_move() else None
            try:
                return self._attempt(share, write_backs)
            except api.BanksExceeded as error:
                raise api.BanksExceeded(f"{self.name}: {error}", error.excess) from None
            except LockError:
                raise
            except REFUSALS as error:
                self._fall_back(f"the plan {'with' if share else 'without'} sharing was refused: {error}")
                output.meta["spec"] = stale  # the specs to place are still these
                if write_backs:
                    write_backs.undo()
        return self._stock()

    def _may_share(self) -> bool:
        return not self.call.device and (bool(self.settings.request.policy.share) or self._may_move())

    def _may_move(self) -> bool:
        return self.settings.move_write_backs and not self.call.branch

    def _attempt(self, share: bool, write_backs: WriteBacks | None) -> GraphReport:
        call = self.call
        graph = self._read()
        refresh_output_specs(call.module)
        request = target_banks.asked(self.settings.request, call.extra_padding, call.branch)
        if request.policy.share and not share:
            why_not = f"on device {call.device}" if call.device else "the plan with sharing was refused"
            policy = replace(request.policy, share=frozenset(), why_not=why_not)
            request = replace(request, policy=policy)
        plan, locked = self._plan(graph, request)
        moved = tuple(write_backs.moved) if write_backs else ()
        self.changed |= bool(plan.active or moved or any(t.role is Role.REGION for t in graph.flow.tensors))
        sizes = [0] * (max([1, *plan.peaks]) + 1)
        for arena, peak in plan.peaks.items():
            sizes[arena] = peak + (call.extra_padding if peak or not request.banks else 0)
        report = report_of(self.name, plan, sizes, self.refused, moved, self.settings.request.banks, call.anywhere)
        return replace(report, locked=locked)

    def _plan(self, graph: ReadGraph, request: api.Request) -> tuple[api.Plan, bool]:
        """A plan that both judges accept, written to the specs; and is it the lock file's?"""

        def judge(plan: api.Plan) -> None:
            self._write(plan, graph)
            if not self.call.device:
                self._judge(plan)

        tell, lock = self.settings.progress, self.settings.lock
        with log_progress(self.name, functools.partial(tell, self.name) if tell else None) as report:
            planner = api.Planner(graph.flow, replace(request, options=replace(request.options, progress=report)))
            if lock is not None:
                return lock.plan(self.name, planner, judge)
            plan = planner.run()
        judge(plan)
        return plan, False

    def _read(self) -> ReadGraph:
        call, given = self.call, self.settings.request.banks
        here = (
            target_banks.unplaced(call.module, self.specs, self.pins, call.anywhere)
            if given
            else contextlib.nullcontext()
        )
        regions = not call.device  # branches are in the CPU's memory
        with here:
            graph = read_graph(call.module, self.specs, call.signature, call.alignment, regions, call.branch)
        return target_banks.freed(graph, given, call.anywhere, call.branch) if given else graph

    def _write(self, plan: api.Plan, graph: ReadGraph) -> None:
        """Write the offsets to the specs."""
        for spec in self.specs:
            tensor = graph.flow.root(graph.ids[id(spec)][0])
            if tensor.arena is None:
                continue  # a stale spec of a buffer that is planned later
            arena, offset = plan.place(tensor.id)
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = arena, offset, None
            spec.realign(1)  # stock's own verifier rounds sizes up to this; ours are exact

    def _judge(self, plan: api.Plan) -> None:
        """The second judge, on the program as it will run. Once it agrees there is no way back."""
        assert self.before is not None  # else there was no plan
        module = self.call.module
        moved = move_branches(plan, module)
        rewrite = Rewrite(module, plan.decisions)
        try:
            replay(self.before, trace(module, self.call.signature, rewrite.names))
            if self.call.branch:
                replay(self.before, trace(module, self.call.signature, rewrite.names, elsewhere=True))
        except ReplayError:
            rewrite.undo()
            put_back(moved)
            raise
        rewrite.commit()

    def _fall_back(self, why: str) -> None:
        if self.settings.strict:
            raise api.PlanningError(f"{why}. Remedy: strict=False falls back to less sharing or to stock's plan")
        warnings.warn(f"arena planner: {why}", ArenaWarning, stacklevel=4)
        self.refused.append(why)

    def _stock(self) -> GraphReport:
        call = self.call
        if self.settings.request.banks:
            raise api.PlanningError(f"{self.name}: no plan in banks passes both judges: {'; '.join(self.refused)}")
        for spec in self.specs:  # as they came: refused plans leave no trace in stock's
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = self.pins.get(id(spec)), None, None
            spec.realign(ALIGNMENT)
        suite = MemoryPlanningAlgorithmSuite()
        sizes = suite(call.alignment, self.specs, call.module, call.signature, call.extra_padding)  # type: ignore[arg-type]
        try:
            if self.before is not None:
                replay(self.before, trace(call.module, call.signature))
        except UnjudgedError as error:
            self.before = None
            self._fall_back(f"stock's plan is taken as it is: {error}")
        except ReplayError as error:
            raise api.PlanningError(
                f"no plan passes both judges: {'; '.join(self.refused)}; and stock's plan is wrong: {error}"
            ) from error
        return GraphReport(self.name, (), (), tuple(self.refused), tuple(sizes), 0.0)
