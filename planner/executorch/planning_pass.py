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
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from executorch.exir.pass_base import PassResult
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule

from planner.api import PlanningError
from planner.executorch.job import ArenaWarning, Call, Job, Settings
from planner.executorch.report import GraphReport
from planner.executorch.trace import trace
from planner.replay import ReplayError, Trace, replay
from solvers.run import Options

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
        self._before: Trace | None = None

    def run(self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None) -> PassResult:
        """Plan a method.

        Raises
        ------
        planner.api.PlanningError
            If no plan passes both judges; with ``strict``, also where a fallback would be taken.
        """
        self._method, self._before = graph_module, None
        self.allow_lifetime_and_storage_overlap = False
        try:
            result = super().run(graph_module, graph_signature)
            if self._before is not None:  # once more, on the graph as it leaves, all devices together
                replay(self._before, trace(graph_module, graph_signature))
        except ReplayError as error:
            raise PlanningError(
                f"the planned program would not compute what it did: {error}. Remedy: stock's MemoryPlanningPass"
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
        settings, name = self.settings, f"method {self._methods}"
        if module is not self._method:
            name = f"branch in {name}"
            settings = replace(settings, elide_concats=False, why_not="inside a branch of control flow")
        job = Job(name, Call(alignment, list(specs), module, signature, extra_padding), settings)
        if module is self._method and self._before is None:
            self._before = job.before
        report = job.run()
        self.allow_lifetime_and_storage_overlap |= job.elided  # parts lie inside their wholes
        self.reports.append(report)
        log.info("%s", report)
        return list(report.buffer_sizes)


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
    why_not = "debug: intermediate outputs stay valid" if debug else "elision is switched off"
    return ArenaPlanningPass(
        Settings(Options(time_limit, workers, seed), elide_concats and not debug, why_not, strict, min_part_alignment),
        alloc_graph_input=alloc_graph_input,
        alloc_graph_output=alloc_graph_output,
        alloc_mutable_buffers=alloc_mutable_buffers,
        share_mutable_buffers=share_mutable_buffers,
        alignment=alignment,
    )


@functools.cache
def _warn_if_untested() -> None:
    if not (installed := version("executorch")).startswith(TESTED):
        warnings.warn(
            f"arena planner: executorch {installed} was not tested; {TESTED}x was. Every plan is still judged twice.",
            ArenaWarning,
            stacklevel=3,
        )
