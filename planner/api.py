"""The one use case: a dataflow in, a verified plan out.

The solver chooses what to share. Unless the objective is another, the arena is never larger than the best one found
without sharing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from planner.alignment import alignments
from planner.dataflow import Dataflow, Tensor
from planner.sharing import Decision, Policy, Sharing, decide, find_sharing
from solvers.bounds import load_bound
from solvers.buffers import Buffer, Colocation, ProblemError
from solvers.deadline import Deadline
from solvers.groups import build_groups
from solvers.problem import Problem
from solvers.reduce import reduce_groups
from solvers.result import Result, Status
from solvers.run import Objective, Options
from solvers.search import solve

TOO_COSTLY = "with it the arena would be larger"
LEFT_OUT = "it contradicts what is shared, or with it the arena would be larger"

WORK_LIMIT = 5_000
"""Ties looked at, all together, to tell the one from the other: a second at most."""


class PlanningError(Exception):
    """No plan that the judges accept, or none within the capacity."""


@dataclass(frozen=True)
class Plan:
    """Where every tensor goes.

    Attributes
    ----------
    problems, results : dict of int to Problem, Result
        By arena.
    decisions : tuple of Decision
        What became of every op that could have shared.
    active : frozenset of Colocation
        The ties that the offsets keep.
    fallbacks : tuple of str
        What was given up and why, in order.
    wall_time : float
        Seconds.
    """

    problems: Mapping[int, Problem]
    results: Mapping[int, Result]
    decisions: tuple[Decision, ...] = ()
    active: frozenset[Colocation] = frozenset()
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

    @property
    def elided(self) -> tuple[str, ...]:
        """Names of the ops that no longer run as they were."""
        return tuple(d.op for d in self.decisions if d.elided)

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


@dataclass(frozen=True)
class Request:
    """What is asked of a plan.

    Attributes
    ----------
    policy : Policy
    reserved : dict of int to int
        By arena, bytes at its bottom that belong to someone else.
    options : Options
        Of the solver.
    """

    policy: Policy = field(default_factory=Policy)
    reserved: Mapping[int, int] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


def plan(flow: Dataflow, request: Request | None = None) -> Plan:
    """Plan a dataflow.

    Parameters
    ----------
    flow : Dataflow
    request : Request, optional

    Returns
    -------
    Plan
        Never larger than the best plan found without sharing, unless the objective is another than the peak.

    Raises
    ------
    PlanningError
        If an arena has no plan, which only pinned or reserved bytes can cause.
    """
    request = request or Request()
    if request.policy.preserve_inputs or request.policy.feedback_safe:
        flow = flow.holding_inputs()
    planner = _Planner(flow, request, find_sharing(flow, request.policy))
    return planner.plan()


class _Planner:
    def __init__(self, flow: Dataflow, request: Request, sharing: Sharing) -> None:
        self.flow = flow
        self.request = request
        self.sharing = sharing
        self.deadline = Deadline(request.options.time_limit)

    def plan(self) -> Plan:
        """What the objective asks; if that is the smallest arena, never larger than without sharing."""
        if not self.sharing.ties:
            return self._finished(self._solve(()), {})
        shared = self._exactly_aligned(self._solve(self.sharing.ties, share=0.5))
        smallest = self.request.options.objective is Objective.PEAK
        if smallest and shared.status is not Status.OPTIMAL and shared.total > self._bound(()):
            plain = self._solve(())
            if plain.total < shared.total:
                why = f"no sharing: with it the arena would be larger than {plain.total} bytes"
                plain = replace(plain, fallbacks=(why,))
                return self._finished(plain, dict.fromkeys(self.sharing.ties, TOO_COSTLY))
        return self._finished(shared, self._why_inactive(shared.active))

    def _finished(self, made: Plan, why: Mapping[Colocation, str]) -> Plan:
        decisions = decide(self.sharing, made.active, why)
        return replace(made, decisions=decisions, wall_time=self.deadline.elapsed)

    def _exactly_aligned(self, made: Plan) -> Plan:
        """Solve again if a tensor is not aligned as it must be under the ties that the solver chose.

        While it chose, all that might come to lie at odd places in others were aligned to their elements only.
        """
        exact = self._problems(made.active, required=True)
        buffers = [b for p in exact.values() for b in p.buffers]
        if all(made.place(b.id)[1] % b.alignment == 0 for b in buffers):
            return made
        again = self._solve(made.active, required=True)
        bounds = {arena: r.lower_bound for arena, r in made.results.items()}
        results = {arena: _with_bound(r, bounds[arena]) for arena, r in again.results.items()}
        return replace(again, results=results)

    def _solve(self, ties: Collection[Colocation], required: bool = False, share: float = 1.0) -> Plan:
        """Solve every arena, each with its part of the time that is left."""
        problems = self._problems(ties, required)
        results = {}
        active: set[Colocation] = set()
        for n, (arena, problem) in enumerate(problems.items()):
            limit = self.deadline.left * share / (len(problems) - n)
            result = solve(problem, "auto", replace(self.request.options, time_limit=limit))
            if result.solution is None:
                raise PlanningError(f"arena {arena} has no plan: {result.status}")
            results[arena] = result
            active |= {replace(problem.colocations[k], required=False) for k in result.solution.active}
        return Plan(problems, results, (), frozenset(active))

    def _problems(self, ties: Collection[Colocation], required: bool = False) -> dict[int, Problem]:
        needs = alignments(self.flow, ties, self.request.policy.min_part_alignment, required)
        arenas: dict[int, list[Buffer]] = {arena: [] for arena in self.request.reserved}
        for t in _placed(self.flow):
            arenas.setdefault(t.arena or 0, []).append(self._buffer(t, needs[t.id]))
        problems = {}
        chosen = set(ties)
        wanted = [replace(c, required=required) for c in self.sharing.ties if c in chosen]
        for arena, buffers in sorted(arenas.items()):
            if size := self.request.reserved.get(arena):
                buffers.append(Buffer("(reserved)", size, -1, len(self.flow.ops) + 1, 1, 0))
            ids = {b.id for b in buffers}
            problems[arena] = Problem(buffers, [c for c in wanted if c.part in ids])
        return problems

    def _buffer(self, t: Tensor, alignment: int) -> Buffer:
        """The storage request of a tensor that owns bytes."""
        start, end = self.flow.lifetimes[t.id]
        return Buffer(t.id, t.size, start, end, alignment)

    def _bound(self, ties: Collection[Colocation]) -> int:
        """The load bound of all arenas together, bytes."""
        total = 0
        for problem in self._problems(ties).values():
            tasks = reduce_groups(problem.groups(problem.required))
            total += max((load_bound(t).value for t in tasks), default=0)
        return total

    def _why_inactive(self, active: frozenset[Colocation]) -> dict[Colocation, str]:
        """For each tie that the solver left out: does it contradict the others, or would it cost memory?

        Looked into only as long as it is cheap.
        """
        why = {}
        buffers = {b.id: b for p in self._problems(self.sharing.ties).values() for b in p.buffers}
        near = _Neighbours(active)
        work = 0
        for c in self.sharing.ties:
            if c in active:
                continue
            ties = [*near.of(c), c]
            work += len(ties)
            if work > WORK_LIMIT:
                why[c] = LEFT_OUT
                continue
            ids = dict.fromkeys(i for t in ties for i in (t.part, t.whole))
            try:
                build_groups([buffers[i] for i in ids], ties)
                why[c] = TOO_COSTLY
            except ProblemError as error:
                why[c] = f"conflicting place: {error}"
        return why


class _Neighbours:
    """Active ties by connected component."""

    def __init__(self, active: Collection[Colocation]) -> None:
        import networkx as nx

        self.graph: nx.Graph[str] = nx.Graph()
        self.ties: dict[str, list[Colocation]] = {}
        self.graph.add_edges_from((c.part, c.whole) for c in active)
        self.root = {i: min(some) for some in map(sorted, nx.connected_components(self.graph)) for i in some}
        for c in active:
            self.ties.setdefault(self.root[c.part], []).append(c)

    def of(self, c: Colocation) -> list[Colocation]:
        """The active ties of all that ``c`` would tie."""
        roots = dict.fromkeys(self.root[i] for i in (c.part, c.whole) if i in self.root)
        return [t for r in roots for t in self.ties[r]]


def _with_bound(result: Result, bound: int) -> Result:
    """What was solved for one choice of ties, with the bound that holds for every choice."""
    met = result.peak is not None and result.peak <= bound
    return replace(result, lower_bound=bound, status=Status.OPTIMAL if met else Status.FEASIBLE, copies_optimal=met)


def _placed(flow: Dataflow) -> Iterable[Tensor]:
    """The tensors that the plan must place: planned, owning bytes, and ever there."""
    return (t for t in flow.tensors if t.base is None and t.arena is not None and t.id in flow.lifetimes)
