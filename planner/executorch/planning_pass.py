"""The pass: plan every graph, judge each plan twice, write it back.

In place of stock's pass::

    ExecutorchBackendConfig(memory_planning_pass=arena_planning_pass())

It fills the gap that stock planning leaves: the arena is proven smallest; concats, slices and splits whose results are
in place already are gone; elementwise results are written onto operands that die there; write-backs of buffers happen
where their value is born; and with ``banks``, as much as can be is in a target's fast memory. If a judge refuses a plan
the pass falls back to less: no sharing, then stock's plan (never with banks), with a warning.
"""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from executorch.exir.pass_base import PassResult
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule, Node

from planner.api import PlanningError, Request
from planner.executorch import nodes
from planner.executorch.graph_trace import trace
from planner.executorch.job import ArenaWarning, Call, GraphJob, Settings
from planner.executorch.pass_report import GraphReport
from planner.executorch.target_banks import banks_of, unused_mem_id
from planner.executorch.write_backs import mend_write_backs
from planner.judge.memory import ReplayError
from planner.judge.replay import Trace, replay
from planner.lock.lock_file import Lock
from planner.program.share_rules import Share
from planner.program.sharing import Policy
from solvers.problem.result import Progress
from solvers.run import Objective, Options

log = logging.getLogger("arena")

TESTED = "1.5."
"""ExecuTorch versions with this prefix are tested."""


class ArenaPlanningPass(MemoryPlanningPass):
    """Stock's pass with another planner; made by `arena_planning_pass`.

    Attributes
    ----------
    reports : list of GraphReport
        One per graph, in the order of planning; branches before the method that they belong to.
    """

    def __init__(self, settings: Settings, **stock_arguments: Any) -> None:
        super().__init__(self._plan_graph, **stock_arguments)
        self.settings = settings
        self.reports: list[GraphReport] = []
        self._methods = 0
        self._method: GraphModule | None = None
        self._anywhere: int | None = None
        self._before: dict[GraphModule, tuple[Trace | None, ExportGraphSignature | None]] = {}
        self._mended: tuple[str, ...] = ()

    def run(self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None) -> PassResult:
        """Plan a method.

        Raises
        ------
        planner.api.PlanningError
            If no plan passes both judges; with ``strict``, also where a fallback would be taken. With ``frozen``, if
            a plan is not in the lock file.
        solvers.files.text.FileError
            If the lock file cannot be read, or is something else.
        """
        try:
            return self._run(graph_module, graph_signature)
        except BaseException:
            self._end()
            raise

    def run_multimethod(self) -> None:
        """The end of an export, after all methods: the lock file is written, if anything in it changed.

        Raises
        ------
        planner.lock.lock_file.LockError
            If someone else wrote it in the meantime.
        solvers.files.text.FileError
            If it cannot be written.
        """
        try:
            super().run_multimethod()
            if self.settings.lock is not None:
                self.settings.lock.close()
        finally:
            self._end()

    def _end(self) -> None:
        """The next method is the first of another export."""
        self._methods = 0
        if self.settings.lock is not None:
            self.settings.lock.forget()

    def _run(self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None) -> PassResult:
        self._method, self._before, self._anywhere = graph_module, {}, None
        self.allow_lifetime_and_storage_overlap = False
        self._mended = mend_write_backs(graph_module, graph_signature)
        try:
            result = self._run_stock(graph_module, graph_signature)
            for module, (before, signature) in self._before.items():
                if before is not None:
                    replay(before, trace(module, signature))  # once more, as it leaves, all devices together
        except ReplayError as error:
            raise PlanningError(
                f"the planned program would not compute what it did: {error}. Remedy: stock's MemoryPlanningPass"
            ) from error
        finally:
            self._method, self._before = None, {}
            self._methods += 1
        return result

    def _run_stock(self, module: GraphModule, signature: ExportGraphSignature | None) -> PassResult:
        """Stock's ``run``, which plans with `_plan_graph` and then checks that inputs and outputs are allocated.

        That check fails for graphs that return, or take, no tensor at all (pytorch/executorch#22477, #22479). There is
        nothing to allocate then; it is stock's last step.
        """
        try:
            return super().run(module, signature)
        except AssertionError as error:
            without = {"graph_output_allocated not set": "output", "graph_input_allocated not set": "placeholder"}
            op = without.get(str(error))
            if op is None or any(nodes.specs_of(n) and not _constant(n) for n in module.graph.nodes if n.op == op):
                raise
            return PassResult(module, True)

    def _plan_graph(
        self,
        alignment: int,
        specs: Sequence[TensorSpec],
        module: GraphModule,
        signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        """Stock calls this for every graph, branches first, and for every device."""
        branch = module is not self._method
        if self._method is not None and self._anywhere is None:
            self._anywhere = unused_mem_id(self._method, self.settings.request.banks)
        call = Call(alignment, list(specs), module, signature, extra_padding, branch, self._anywhere or 0)
        name = f"branch in method {self._methods}" if branch else f"method {self._methods}"
        job = GraphJob(f"{name}, {call.device}" if call.device else name, call, self.settings)
        report = replace(job.run(), mended=() if branch else self._mended)
        if module not in self._before or job.before is None:
            self._before[module] = (job.before, signature)
        self.allow_lifetime_and_storage_overlap |= job.changed  # tensors share storage, or die earlier
        self.reports.append(report)
        log.info("%s", report)
        return list(report.buffer_sizes)


def arena_planning_pass(
    time_limit: float = 10.0,
    elide_concats: bool = True,
    elide_views: bool = True,
    in_place: bool = True,
    move_write_backs: bool = True,
    workers: int = 0,
    alignment: int = 16,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    share_mutable_buffers: bool = False,
    min_part_alignment: int = 1,
    alias_outputs: bool = False,
    preserve_inputs: bool = False,
    feedback_safe: bool = False,
    objective: str = "peak",
    copy_weight: float = 1.0,
    seed: int = 0,
    reproducible: bool = True,
    debug: bool = False,
    strict: bool = False,
    banks: Any = None,
    lock: str | os.PathLike[str] | None = None,
    frozen: bool = False,
    progress: Callable[[str, Progress], None] | None = None,
) -> ArenaPlanningPass:
    """A memory planning pass for ``ExecutorchBackendConfig(memory_planning_pass=...)``.

    Parameters
    ----------
    time_limit : float
        Seconds of search per graph; most need milliseconds.
    elide_concats : bool
        Let the parts of concats be written where the concat would have copied them.
    elide_views : bool
        Let slices, selects, splits, squeezes and the like show the bytes of what they are cut from.
    in_place : bool
        Let elementwise ops write their result onto an operand that dies there.
    move_write_backs : bool
        Copy new values of mutable buffers back where they are born, not at the end of the graph.
    workers : int
        Threads; 0 means one per core.
    alignment : int
        Bytes, of every tensor that is not part of another.
    alloc_graph_input, alloc_graph_output, alloc_mutable_buffers, share_mutable_buffers : bool
        As in stock's ``MemoryPlanningPass``.
    min_part_alignment : int
        Bytes; a part lies at a multiple of this and of its element size, or it is copied. For targets whose kernels
        want aligned data.
    alias_outputs : bool
        Let outputs share bytes with each other, with an input or with a buffer. Values are right, but a caller that
        writes into one changes the other.
    preserve_inputs : bool
        Planned inputs are intact at the end of a run: the program can be run again without setting them. Stock does
        not promise it.
    feedback_safe : bool
        No output lies on an input, so that a caller may hand an output in as an input of the next run. Stock does not
        promise it.
    objective : {"peak", "copies", "weighted"}
        The smallest arena, and with it the least copying; the least copying, and with it the smallest arena; or the
        sum of arena bytes and ``copy_weight`` times the bytes copied.
    copy_weight : float
        Bytes of arena that one copied byte is worth.
    seed : int
        Of the search.
    reproducible : bool
        The same graph gets the same plan on every machine, for any number of workers; ``time_limit`` is then in work
        seconds, about what one worker does in a second, and on the wall as well. If the wall limit strikes first, the
        report says so. Off, the clock alone decides.
    debug : bool
        Plan without sharing, so that intermediate outputs stay valid for the Inspector.
    strict : bool
        Raise where the pass would fall back with a warning.
    banks : TargetMemoryMap or sequence of Bank, optional
        The memories of the target, the fastest first (`solvers.Bank`, or ExecuTorch's own): as many bytes as can
        be, weighted by the ops that use them, are put into the first, then into the second. A ``mem_id`` that a tensor
        has already pins it to that bank; one that no bank has is used for nothing else. An export that the banks do not
        hold fails with `planner.api.BanksExceeded`, which has the numbers.
    lock : str or path, optional
        A file that keeps the plans, to be committed. As long as a graph asks for the same (tensors and lifetimes,
        options that say what to plan), its plan in the file is judged and used, and nothing is solved, be it optimal or
        not; weights, ``seed``, ``time_limit`` and ``workers`` may change. Otherwise the graph is planned anew, with a
        warning in the log, and the file is written at the end of the export. A pass needs a file of its own.
    frozen : bool
        With ``lock``: fail where a plan is not in the file, and never write it.
    progress : callable, optional
        Is told of every better plan or bound while solving: the graph's name, and a `solvers.Progress`, whose
        time is that since its solve began. Always in the thread of the export. What it raises ends the export. At most
        two lines a second also go to the logger ``arena``, at INFO.

    Returns
    -------
    ArenaPlanningPass
        Its ``reports`` say afterwards what was done.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    if frozen and lock is None:
        raise ValueError("frozen is true, but there is no lock: frozen asks for the plans of a lock file")
    if banks is not None and share_mutable_buffers:
        raise ValueError("share_mutable_buffers does not go with banks: ExecuTorch puts shared buffers into mem_id 2")
    for name, value in (("alignment", alignment), ("min_part_alignment", min_part_alignment)):
        if value < 1:
            raise ValueError(f"{name} is {value}: it must be at least 1")
    if time_limit < 0 or workers < 0:
        raise ValueError(f"time_limit is {time_limit}, workers is {workers}: neither may be negative")
    if objective not in tuple(Objective):
        raise ValueError(f"objective is {objective!r}: it must be one of {', '.join(Objective)}")
    _warn_if_untested()
    wanted = {Share.CONCAT: elide_concats, Share.VIEW: elide_views, Share.IN_PLACE: in_place}
    policy = Policy(
        frozenset(share for share, on in wanted.items() if on and not debug),
        alias_outputs,
        preserve_inputs,
        feedback_safe,
        min_part_alignment,
        "debug: intermediate outputs stay valid" if debug else "switched off",
    )
    options = Options(
        time_limit,
        workers,
        seed,
        objective=Objective(objective),
        copy_weight=copy_weight,
        reproducible=reproducible,
    )
    request = Request(policy, options=options, banks=() if banks is None else banks_of(banks, alignment))
    return ArenaPlanningPass(
        Settings(
            request,
            strict,
            move_write_backs and not debug,
            None if lock is None else Lock(lock, frozen),
            progress,
        ),
        alloc_graph_input=alloc_graph_input,
        alloc_graph_output=alloc_graph_output,
        alloc_mutable_buffers=alloc_mutable_buffers,
        share_mutable_buffers=share_mutable_buffers,
        alignment=alignment,
    )


def _constant(node: Node) -> bool:
    """Has the node constants only, a weight for instance?"""
    return all(s.const for s in nodes.specs_of(node))


@functools.cache
def _warn_if_untested() -> None:
    if not (installed := version("executorch")).startswith(TESTED):
        warnings.warn(
            f"arena planner: executorch {installed} was not tested; {TESTED}x was. Every plan is still judged twice.",
            ArenaWarning,
            stacklevel=3,
        )
