"""The one use case: a dataflow in, a verified plan out.

The solver chooses what to share. Unless the objective is another, the arena is never larger than the best one found
without sharing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from planner.judge.memory import ReplayError
from planner.program.alignment import alignments
from planner.program.banking import in_banks, solve_in_banks
from planner.program.dataflow import Dataflow, Tensor
from planner.program.sharing import Decision, Policy, Sharing, decide, find_sharing
from solvers.banks.bank import Bank, Excess
from solvers.deadline import Deadline
from solvers.place.bounds import problem_bound
from solvers.problem.buffers import Buffer, Colocation, Kind, ProblemError
from solvers.problem.groups import build_groups
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Status
from solvers.run import Objective, Options
from solvers.search import solve
from solvers.verifier import VerificationError

NOT_NEEDED = "not needed: the solver's plan does without it"

WORK_LIMIT = 5_000
"""Ties looked at, all together, to find out which of them contradict others: a second at most."""


class PlanningError(Exception):
    """No plan that the judges accept, or none within the capacity."""


class BanksExceeded(PlanningError):
    """The banks do not hold the tensors: the message has the bytes required, available and in excess, and the tensors
    to blame. ``excess`` has them as numbers, where they are known."""

    def __init__(self, message: str, excess: Excess | None = None) -> None:
        super().__init__(message)
        self.excess = excess


REFUSALS = (PlanningError, ProblemError, ReplayError, VerificationError)
"""What is raised where a plan is refused, or there is none."""


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
    best_assignment : bool
        With banks: no plan has more weight in faster banks, whatever is shared.
    """

    problems: Mapping[int, Problem]
    results: Mapping[int, Result]
    decisions: tuple[Decision, ...] = ()
    active: frozenset[Colocation] = frozenset()
    fallbacks: tuple[str, ...] = ()
    wall_time: float = 0.0
    best_assignment: bool = True

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
        """Optimal if each arena is, and no assignment to banks is better."""
        proven = self.best_assignment and all(r.status is Status.OPTIMAL for r in self.results.values())
        return Status.OPTIMAL if proven else Status.FEASIBLE

    @property
    def struck(self) -> bool:
        """Did the time limit end the search? Then another run may find another plan."""
        return any(r.struck for r in self.results.values())

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
    banks : tuple of Bank
        Memories of the target, the fastest first, for the tensors of arena 0; those whose arena is a bank's mem_id are
        pinned to it. None: every arena is as large as it must be.

    Raises
    ------
    ValueError
        If there are banks and reserved bytes.
    """

    policy: Policy = field(default_factory=Policy)
    reserved: Mapping[int, int] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    banks: tuple[Bank, ...] = ()

    def __post_init__(self) -> None:
        if self.banks and self.reserved:
            raise ValueError("banks do not go with reserved bytes: reserve them by smaller banks")


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
        If an arena has no plan, which only pinned or reserved bytes can cause; `BanksExceeded` if the banks are too
        small.
    """
    return Planner(flow, request or Request()).run()


class Planner:
    """What `plan` does, for who must know what there is to choose from (`planner.lock.lock_file`).

    Parameters
    ----------
    flow : Dataflow
    request : Request

    Attributes
    ----------
    flow : Dataflow
        With inputs that last as long as the policy asks.
    sharing : Sharing
        Its ties are those to choose from.
    """

    def __init__(self, flow: Dataflow, request: Request) -> None:
        self.deadline = Deadline(request.options.time_limit, request.options.clock())
        holding = request.policy.preserve_inputs or request.policy.feedback_safe
        self.flow = flow.holding_inputs() if holding else flow
        self.request = request
        self.sharing: Sharing = find_sharing(self.flow, request.policy)

    def run(self) -> Plan:
        """See `plan`."""
        return self.plan_in_banks() if self.request.banks else self.plan()

    def plan(self) -> Plan:
        """What the objective asks; if that is the smallest arena, never larger than without sharing."""
        ties = self.sharing.ties
        if not ties:
            return self.finished(self._solve(()))
        free = self._solve(ties, share=0.5)
        bounds = {arena: r.lower_bound for arena, r in free.results.items()}
        best = self._exactly_aligned(free, bounds)
        if self.request.options.objective is Objective.PEAK:
            for fewer in self._fewer(best is not free):
                if best.status is not Status.OPTIMAL and (fewer or best.total > self._bound_without()):
                    other = self._exactly_aligned(self._solve(fewer, share=0.5), bounds)
                    best = min(best, _with_bounds(other, bounds), key=lambda p: p.total)
        made = self.finished(best)
        if best.active or best is free:
            return made
        return replace(made, fallbacks=(f"no sharing: with it the arena would be larger than {best.total} bytes",))

    def plan_in_banks(self) -> Plan:
        """As without banks; then the tensors go to banks, with the ties of that plan or fewer."""
        whole, self.deadline = self.deadline, self.deadline.part(0.4)
        made, self.deadline = self.plan(), whole
        banks, ties, options = self.request.banks, self.sharing.ties, self.request.options
        result, active = solve_in_banks(self.flow, banks, self.problems, ties, made.active, options, whole)
        if result.solution is None:
            why = result.excess or f"{result.status}, pinned tensors overlap in every bank"
            raise BanksExceeded(f"the banks do not hold the tensors: {why}", result.excess)
        others = {arena: p for arena, p in made.problems.items() if not in_banks(arena, banks)}
        ids = {b.id for p in others.values() for b in p.buffers}
        active |= {c for c in made.active if c.part in ids}
        mem_ids = [b.mem_id for b in banks]
        problems = others | dict(zip(mem_ids, result.problems, strict=True))
        results = {arena: made.results[arena] for arena in others} | dict(zip(mem_ids, result.results, strict=True))
        best = result.best_assignment
        return self.finished(Plan(problems, results, (), active, best_assignment=best))

    def _fewer(self, misaligned: bool) -> Iterator[list[Colocation]]:
        """Fewer ties to choose from: none at odd places, none but hand-offs, none."""
        ties = self.sharing.ties
        if misaligned:
            yield [c for c in ties if c.at % self.flow.by_id[c.part].alignment == 0]
            yield [c for c in ties if c.kind is Kind.HANDOFF]
        yield []

    def finished(self, made: Plan) -> Plan:
        """A plan with what became of every op, and the time that it took."""
        why = self._why_inactive(made.active) if self.sharing.ties else {}
        decisions = decide(self.sharing, made.active, why)
        return replace(made, decisions=decisions, wall_time=self.deadline.elapsed)

    def _exactly_aligned(self, made: Plan, bounds: Mapping[int, int]) -> Plan:
        """Solve again if a tensor is not aligned as it must be under the ties that the solver chose.

        While it chose, all that might come to lie at odd places in others were aligned to their elements only.
        ``bounds``, by arena, hold for every choice.
        """
        exact = self.problems(made.active, required=True)
        buffers = [b for p in exact.values() for b in p.buffers]
        if all(made.place(b.id)[1] % b.alignment == 0 for b in buffers):
            return made
        return _with_bounds(self._solve(made.active, required=True), bounds)

    def _solve(self, ties: Collection[Colocation], required: bool = False, share: float = 1.0) -> Plan:
        """Solve every arena, each with its part of the time that is left."""
        problems = self.problems(ties, required)
        results = {}
        active: set[Colocation] = set()
        for n, (arena, problem) in enumerate(problems.items()):
            limit = self.deadline.left * share / (len(problems) - n)
            result = solve(problem, "auto", replace(self.request.options, time_limit=limit), self.deadline.clock)
            if result.solution is None:
                raise PlanningError(f"arena {arena} has no plan: {result.status}")
            results[arena] = result
            active |= {replace(problem.colocations[k], required=False) for k in result.solution.active}
        return Plan(problems, results, (), frozenset(active))

    def problems(self, ties: Collection[Colocation], required: bool = False) -> dict[int, Problem]:
        """By arena, the problem with these of the ties to choose from: optional, or required."""
        needs = alignments(self.flow, ties, self.request.policy.min_part_alignment, required)
        arenas: dict[int, list[Buffer]] = {arena: [] for arena in self.request.reserved}
        for t in _placed(self.flow):
            arenas.setdefault(t.arena or 0, []).append(self._buffer(t, needs[t.id]))
        problems = {}
        chosen = set(ties)
        offered = [replace(c, required=required) for c in self.sharing.ties if c in chosen]
        wanted = [*self.flow.ties, *offered]
        for arena, buffers in sorted(arenas.items()):
            if size := self.request.reserved.get(arena):
                buffers.append(Buffer("(reserved)", size, -1, len(self.flow.ops) + 1, 1, 0))
            ids = {b.id for b in buffers}
            problems[arena] = Problem(buffers, [c for c in wanted if c.part in ids])
        return problems

    def _buffer(self, t: Tensor, alignment: int) -> Buffer:
        """The storage request of a tensor that owns bytes."""
        start, end = self.flow.lifetimes[t.id]
        return Buffer(t.id, t.size, start, end, alignment, t.offset)

    def _bound_without(self) -> int:
        """The load bound of all arenas together without sharing, bytes."""
        return sum(problem_bound(problem) for problem in self.problems(()).values())

    def _why_inactive(self, active: frozenset[Colocation]) -> dict[Colocation, str]:
        """For each tie that the solver left out: does it contradict the others?

        Looked into only as long as it is cheap.
        """
        why = dict.fromkeys(self.sharing.ties, NOT_NEEDED)
        buffers = {b.id: b for p in self.problems(self.sharing.ties).values() for b in p.buffers}
        near = _Neighbours(active)
        work = 0
        for c in self.sharing.ties:
            if c in active:
                continue
            ties = [*near.of(c), c]
            work += len(ties)
            if work > WORK_LIMIT:
                break
            ids = dict.fromkeys(i for t in ties for i in (t.part, t.whole))
            try:
                build_groups([buffers[i] for i in ids], ties)
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


def _with_bounds(made: Plan, bounds: Mapping[int, int]) -> Plan:
    """What was solved for some choices of ties only, with the bounds (by arena) that hold for every choice."""
    results = {}
    for arena, r in made.results.items():
        met = r.peak is not None and r.peak <= bounds[arena]
        status = Status.OPTIMAL if met else Status.FEASIBLE
        results[arena] = replace(r, lower_bound=bounds[arena], status=status, copies_optimal=False)
    return replace(made, results=results)


def _placed(flow: Dataflow) -> Iterable[Tensor]:
    """The tensors that the plan must place: planned, owning bytes, and ever there."""
    return (t for t in flow.tensors if t.base is None and t.arena is not None and t.id in flow.lifetimes)
