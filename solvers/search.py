"""The pipeline under one deadline: bound, greedy, stop when equal, decide at the bound, climb, minimise.

Every plan is judged by `verify` before it counts. When time is up the best plan in hand is returned; once the first
verified plan exists, an overrun is at most a tenth of a second plus 5 %.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solvers.bounds import choice_bound, load_bound
from solvers.choices import most_sharing
from solvers.cp_sat import Answer, Engine, Verdict
from solvers.deadline import Deadline
from solvers.greedy import pinned_collide, portfolio
from solvers.groups import Group
from solvers.problem import Problem
from solvers.reduce import Task, reduce_groups, restore
from solvers.result import Progress, Result, Solution, Status
from solvers.stock import stock_applies, stock_greedy
from solvers.verify import verify

log = logging.getLogger("arena")

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Options:
    """How to search: seconds, threads (0: one per core), random seed, and who is told of progress."""

    time_limit: float = 10.0
    workers: int = 0
    seed: int = 0
    progress: Report | None = None

    @property
    def threads(self) -> int:
        """The number of workers, at least 1."""
        return self.workers or os.cpu_count() or 1


def solve(problem: Problem, solver: str = "auto", options: Options | None = None) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
    solver : str
        A name from `SOLVERS`.
    options : Options, optional

    Returns
    -------
    Result
        With a verified solution, unless infeasible or unknown.

    Raises
    ------
    ValueError
        If the solver is not known.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver is {solver!r}: it must be one of {', '.join(SOLVERS)}")
    run = _Run(problem, options or Options())
    return SOLVERS[solver](run)


@dataclass
class _Run:
    """What all stages of one solve share: the problem (also without its capacity), the clock, the trace.

    ``proven`` is the floor for every choice of optional colocations, if there are any; that of one choice proves
    nothing then.
    """

    problem: Problem
    options: Options
    trace: list[Progress] = field(default_factory=list)
    proven: int | None = None

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.options.time_limit)
        self.capacity = self.problem.capacity
        self.open_problem = self.problem
        if self.capacity is not None:
            self.open_problem = Problem(self.problem.buffers, self.problem.colocations, name=self.problem.name)

    def report(self, peak: int | None, bound: int, engine: str) -> None:
        line = Progress(self.deadline.elapsed, peak, bound if self.proven is None else self.proven, engine)
        self.trace.append(line)
        log.debug("%.3f s: peak %s, bound %d, %s", line.time, line.peak, line.lower_bound, line.engine)
        if self.options.progress:
            self.options.progress(line)

    def result(self, plan: _Plan | None, bound: int, engine: str, copies_optimal: bool = True) -> Result:
        """Judge the plan against the problem with its capacity and say what is proven."""
        solution = plan.solution if plan else None
        peak = plan.peak if plan else None
        if plan is None or (self.capacity is not None and plan.peak > self.capacity):
            impossible = plan is None and self.proven is None
            impossible |= self.capacity is not None and bound > self.capacity
            status, solution = (Status.INFEASIBLE if impossible else Status.UNKNOWN), None
        else:
            verify(self.problem, plan.solution)
            status = Status.OPTIMAL if plan.peak <= bound else Status.FEASIBLE
        self.report(peak, bound, engine)
        return Result(status, solution, peak, bound, engine, self.deadline.elapsed, copies_optimal, tuple(self.trace))


@dataclass(frozen=True)
class _Plan:
    """A verified plan and its peak, bytes."""

    solution: Solution
    peak: int
    engine: str


class _Choice:
    """The search for one choice of active colocations: its tasks, and the best placement of each."""

    def __init__(self, run: _Run, active: Sequence[int], deadline: Deadline) -> None:
        self.run = run
        self.deadline = deadline
        self.active = tuple(active)
        self.groups: tuple[Group, ...] = run.problem.groups(self.active)
        self.tasks = reduce_groups(self.groups)
        self.bounds = [load_bound(t).value for t in self.tasks]
        self.floor = max([self._floor_of_empty(), *self.bounds])
        self.collision = any(pinned_collide(t) for t in self.tasks)
        self.bases: list[list[int]] = []
        self.engines: list[str] = []
        self.whole: _Plan | None = None

    def _floor_of_empty(self) -> int:
        """Where groups without segments end: they are put as low as they may be."""
        ends = [(g.base if g.base is not None else g.residue) + g.extent for g in self.groups if not g.segments]
        return max(ends, default=0)

    @property
    def bound(self) -> int:
        """Proven floor for this choice, bytes."""
        return max([self.floor, *self.bounds])

    @property
    def peak(self) -> int:
        """Peak of the best placement, bytes."""
        mine = max([self.floor, *(t.peak(x) for t, x in zip(self.tasks, self.bases, strict=True))])
        return min(mine, self.whole.peak) if self.whole else mine

    @property
    def engine(self) -> str:
        """Who found what holds the peak."""
        if self.whole and self.whole.peak <= self.peak:
            return self.whole.engine
        peaks = [t.peak(x) for t, x in zip(self.tasks, self.bases, strict=True)]
        return self.engines[peaks.index(max(peaks))] if peaks else "bound"

    def plan(self) -> _Plan:
        """The best plan in hand, verified."""
        if self.whole and self.whole.peak <= self.peak:
            return self.whole
        placed = {
            b.group: x * t.unit + self.groups[b.group].residue
            for t, bases in zip(self.tasks, self.bases, strict=True)
            for b, x in zip(t.blocks, bases, strict=True)
        }
        solution = Solution(restore(self.groups, placed), self.active)
        return _Plan(solution, verify(self.run.open_problem, solution), self.engine)

    def greedy(self) -> None:
        """The first plan: the best first-fit of each task, or stock greedy's where that is better."""
        for t in self.tasks:
            best: tuple[int, str, list[int]] | None = None
            for name, bases in portfolio(t):
                if best is None or t.peak(bases) < best[0]:
                    best = (t.peak(bases), name, bases)
                if best[0] <= self.bound:
                    break
            assert best is not None  # the portfolio is never empty
            self.bases.append(best[2])
            self.engines.append(best[1])
        if not self.active and self.peak > self.bound and stock_applies(self.run.problem):
            solution = Solution(stock_greedy(self.run.problem))
            peak = verify(self.run.open_problem, solution)
            if peak < self.peak:
                self.whole = _Plan(solution, peak, "stock greedy")
        self.run.report(self.plan().peak, self.bound, self.engine)

    def improve(self, always: bool = False) -> None:
        """Exact search on each task that holds the peak up; ``always`` also where greedy met the bound."""
        for k in range(len(self.tasks)):
            _Exact(self, k).run(always)


class _Exact:
    """Exact search on one task of a choice."""

    def __init__(self, choice: _Choice, k: int) -> None:
        self.choice = choice
        self.task: Task = choice.tasks[k]
        self.k = k
        self.deadline = choice.deadline
        options = choice.run.options
        self.engine = Engine(self.task, self.peak, self.deadline, options.threads, options.seed)

    @property
    def peak(self) -> int:
        return self.task.peak(self.choice.bases[self.k])

    @property
    def target(self) -> int:
        """What this task must reach and no more: another task may hold the peak higher."""
        return self.choice.bound

    @property
    def capacity(self) -> int | None:
        return self.choice.run.capacity

    @property
    def finished(self) -> bool:
        """Proven, hopeless, or out of time."""
        over = self.capacity is not None and self.target > self.capacity
        return self.peak <= self.target or over or self.deadline.passed

    def run(self, always: bool) -> None:
        if self.finished and not (always and not self.deadline.passed):
            return
        if not self.engine.ready():
            return
        if always:
            self._decide(self.peak, self.deadline.left)
        limit = 0.5
        while not self.finished:
            self._decide(self.target, limit)
            self._climb(limit / 2)
            if not self.finished:
                self._take(self.engine.minimise(self.choice.bases[self.k], self.target, limit))
            limit *= 2

    def _climb(self, limit: float) -> None:
        """Probe capacities between the bound and the peak: feasible ones are scattered, so try several."""
        low, high = self.target, self.peak
        rungs = {low + (high - low) * i // 4 for i in (1, 2, 3)}
        if self.capacity is not None and low < self.capacity < high:
            rungs.add(self.capacity)
        for rung in sorted(rungs):
            if self.target < rung < self.peak and not self.finished:
                self._decide(rung, limit)

    def _decide(self, capacity: int, limit: float) -> None:
        answer = self.engine.decide(capacity, limit)
        if answer.verdict is Verdict.INFEASIBLE:
            self._raise_bound(capacity + 1, answer.engine)
        self._take(answer)

    def _raise_bound(self, bound: int, engine: str) -> None:
        if bound > self.choice.bounds[self.k]:
            self.choice.bounds[self.k] = self._next_peak(bound)
            self.choice.run.report(self.choice.peak, self.choice.bound, engine)

    def _next_peak(self, bound: int) -> int:
        """The smallest value of at least ``bound`` that a peak of this task can have."""
        tops = {b.top % self.task.unit for b in self.task.blocks}
        return min(bound + (top - bound) % self.task.unit for top in tops)

    def _take(self, answer: Answer) -> None:
        if answer.lower_bound:
            self._raise_bound(answer.lower_bound, answer.engine)
        if answer.bases is None or self.task.peak(answer.bases) > self.peak:
            return
        better = self.task.peak(answer.bases) < self.peak
        self.choice.bases[self.k] = answer.bases
        self.choice.engines[self.k] = answer.engine
        if better:
            self.choice.plan()
            self.choice.run.report(self.choice.peak, self.choice.bound, answer.engine)


Improve = Callable[[_Choice], None]


def _solve(run: _Run, improve: Improve) -> Result:
    if len(run.problem.required) < len(run.problem.colocations):
        return _solve_choices(run, improve)
    choice = _Choice(run, run.problem.required, run.deadline)
    if choice.collision:
        return run.result(None, choice.bound, "pinned buffers")
    choice.greedy()
    improve(choice)
    return run.result(choice.plan(), choice.bound, choice.engine)


def _solve_choices(run: _Run, improve: Improve) -> Result:
    """Without optional colocations first, so that there is a plan; then with as many as go together."""
    problem = run.problem
    run.proven = choice_bound(problem)
    choices = [_Choice(run, problem.required, run.deadline)]
    if not choices[0].collision:
        choices[0].greedy()
    sharing = most_sharing(problem, run.deadline)
    if sharing != problem.required and (choices[0].collision or not run.deadline.passed):
        choices.insert(0, _Choice(run, sharing, run.deadline.part(0.5)))
        if not choices[0].collision:
            choices[0].greedy()
    plans: list[_Plan] = []
    for choice in choices:
        if not choice.collision and (not plans or plans[0].peak > run.proven):
            improve(choice)
            plans.append(choice.plan())
    best = min(plans, key=lambda p: p.peak, default=None)
    everything = best is not None and len(best.solution.active) == len(problem.colocations)
    return run.result(best, run.proven, best.engine if best else "pinned buffers", everything)


def _auto(run: _Run) -> Result:
    return _solve(run, lambda choice: choice.improve())


def _cp_sat(run: _Run) -> Result:
    return _solve(run, lambda choice: choice.improve(always=True))


def _greedy(run: _Run) -> Result:
    return _solve(run, lambda choice: None)


SOLVERS: dict[str, Callable[[_Run], Result]] = {"auto": _auto, "cp-sat": _cp_sat, "greedy": _greedy}
"""Every solver by name, best first; all obey one contract: a verified plan, the best in hand when time is up."""
