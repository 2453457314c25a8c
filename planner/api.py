"""The one use case: a dataflow in, a verified plan out.

With sharing if that is not larger than without; else with less of it; else with none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.dataflow import Dataflow, Tensor
from planner.sharing import Sharing, buffer_of, no_sharing, share_concats
from solvers.bounds import load_bound
from solvers.buffers import Buffer
from solvers.deadline import Deadline
from solvers.problem import Problem
from solvers.reduce import reduce_groups
from solvers.result import Result, Status
from solvers.run import Options
from solvers.search import solve


class PlanningError(Exception):
    """No plan that the judges accept, or none within the capacity."""


@dataclass(frozen=True)
class Plan:
    """Where every tensor goes.

    Attributes
    ----------
    problems, results : dict of int to Problem, Result
        By arena.
    sharing : Sharing
    fallbacks : tuple of str
        What was given up and why, in order.
    wall_time : float
        Seconds.
    """

    problems: Mapping[int, Problem]
    results: Mapping[int, Result]
    sharing: Sharing
    fallbacks: tuple[str, ...] = ()
    wall_time: float = 0.0

    @property
    def peaks(self) -> dict[int, int]:
        """Peak by arena, bytes."""
        return {arena: r.peak or 0 for arena, r in self.results.items()}

    @property
    def total(self) -> int:
        """Sum of the peaks, bytes."""
        return sum(self.peaks.values())

    @property
    def status(self) -> Status:
        """Optimal if each arena is."""
        proven = all(r.status is Status.OPTIMAL for r in self.results.values())
        return Status.OPTIMAL if proven else Status.FEASIBLE

    def place(self, tensor_id: str) -> tuple[int, int]:
        """Arena and offset (bytes) of a tensor that owns bytes.

        Raises
        ------
        KeyError
            If the plan does not place it.
        """
        for arena, result in self.results.items():
            if result.solution is not None and tensor_id in result.solution.offsets:
                return arena, result.solution.offsets[tensor_id]
        raise KeyError(tensor_id)


def plan(
    flow: Dataflow,
    *,
    elide_concats: bool = True,
    min_part_alignment: int = 1,
    reserved: Mapping[int, int] | None = None,
    why_not: str = "elision is switched off",
    options: Options | None = None,
) -> Plan:
    """Plan a dataflow.

    Parameters
    ----------
    flow : Dataflow
    elide_concats : bool
    min_part_alignment : int
        Bytes; places inside a concat are multiples of it.
    reserved : dict of int to int, optional
        By arena, bytes at its bottom that belong to someone else.
    why_not : str
        The reason that refused concats get if ``elide_concats`` is off.
    options : Options, optional

    Returns
    -------
    Plan
        Never larger than the best plan found without sharing.

    Raises
    ------
    PlanningError
        If an arena has no plan, which only pinned or reserved bytes can cause.
    """
    planner = _Planner(flow, min_part_alignment, dict(reserved or {}), options or Options())
    none = no_sharing(flow, why_not)
    if not elide_concats:
        return planner.solve(none)
    sharing = share_concats(flow, (), min_part_alignment)
    if not sharing.elided:
        return planner.solve(sharing)
    return planner.never_worse(sharing, no_sharing(flow, "eliding it would make the arena larger"))


@dataclass
class _Planner:
    flow: Dataflow
    min_part_alignment: int
    reserved: dict[int, int]
    options: Options

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.options.time_limit)

    def never_worse(self, sharing: Sharing, none: Sharing) -> Plan:
        """The smallest arena; among equals, the most sharing."""
        shared = self.solve(sharing, share=0.5)
        if shared.total <= sum(self._bounds(none).values()):
            return shared
        plain = self.solve(none, share=0.5)
        dropped: list[str] = []
        while shared.total > plain.total and sharing.elided and not self.deadline.passed:
            dropped.append(self._most_costly(sharing, dropped))
            sharing = share_concats(self.flow, dropped, self.min_part_alignment)
            shared = self.solve(sharing, share=0.5)
        if shared.total > plain.total or not sharing.elided:
            why = f"no sharing: with it the arena would be larger than {plain.total} bytes"
            return replace(plain, fallbacks=(why,), wall_time=self.deadline.elapsed)
        if dropped:
            why = f"less sharing: eliding {', '.join(dropped)} as well would make the arena larger"
            shared = replace(shared, fallbacks=(why,))
        return replace(shared, wall_time=self.deadline.elapsed)

    def solve(self, sharing: Sharing, share: float = 1.0) -> Plan:
        """Solve every arena, each with its part of the time that is left."""
        problems = self._problems(sharing)
        results = {}
        for n, (arena, problem) in enumerate(problems.items()):
            limit = self.deadline.left * share / (len(problems) - n)
            results[arena] = solve(problem, "auto", replace(self.options, time_limit=limit))
            if results[arena].solution is None:
                raise PlanningError(f"arena {arena} has no plan: {results[arena].status}")
        return Plan(problems, results, sharing, (), self.deadline.elapsed)

    def _problems(self, sharing: Sharing) -> dict[int, Problem]:
        parts = {c.part for c in sharing.colocations}
        arenas: dict[int, list[Buffer]] = {arena: [] for arena in self.reserved}
        for t in _placed(self.flow):
            b = buffer_of(self.flow, t, t.id in parts, self.min_part_alignment)
            arenas.setdefault(t.arena or 0, []).append(b)
        problems = {}
        for arena, buffers in sorted(arenas.items()):
            if self.reserved.get(arena):
                buffers.append(self._reserve(arena))
            ids = {b.id for b in buffers}
            problems[arena] = Problem(buffers, [c for c in sharing.colocations if c.part in ids])
        return problems

    def _reserve(self, arena: int) -> Buffer:
        return Buffer("(reserved)", self.reserved[arena], -1, len(self.flow.ops) + 1, 1, 0)

    def _bounds(self, sharing: Sharing) -> dict[int, int]:
        return {arena: _bound(problem) for arena, problem in self._problems(sharing).items()}

    def _most_costly(self, sharing: Sharing, dropped: list[str]) -> str:
        """The elided concat without which the lower bound is smallest; among equals the one that saves least.

        When time is up, the best of those looked at.
        """
        nbytes = {d.op: d.nbytes for d in sharing.decisions}
        costs: dict[str, tuple[int, int]] = {}
        for op in sorted(sharing.elided, key=lambda op: -nbytes[op]):
            if costs and self.deadline.passed:
                break
            left = share_concats(self.flow, [*dropped, op], self.min_part_alignment)
            costs[op] = (sum(self._bounds(left).values()), nbytes[op])
        return min(costs, key=lambda op: costs[op])


def _bound(problem: Problem) -> int:
    tasks = reduce_groups(problem.groups(problem.required))
    return max((load_bound(t).value for t in tasks), default=0)


def _placed(flow: Dataflow) -> Iterable[Tensor]:
    """The tensors that the plan must place: planned, owning bytes, and ever there."""
    return (t for t in flow.tensors if t.base is None and t.arena is not None and t.id in flow.lifetimes)
