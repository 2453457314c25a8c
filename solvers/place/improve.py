"""Exact search on one task: a race of native searches; where these prove nothing, CP-SAT decides, climbs, minimises."""

from __future__ import annotations

from solvers.place.cp_sat import FIXED_ORDERS, Engine
from solvers.place.fixed_choice import FixedChoice
from solvers.place.native_jobs import Field, probes
from solvers.place.race import Answer, Job, Verdict, race
from solvers.problem.reduce import Task

ROUND = 16
"""Probes in one round of the race."""

NATIVE_SECONDS, UNSURE_SECONDS, NATIVE_SHARE = 2.0, 0.2, 0.8
"""CP-SAT is first asked after so long, earlier where the native core cannot prove all, and leaves so much of the time
to it."""

BESIDE_LIMIT = 3000
"""Of more blocks, CP-SAT is not asked where the native core can prove as well."""


def improve(shape: FixedChoice) -> None:
    """Search on each task that holds the peak up."""
    for k in range(len(shape.tasks)):
        _Exact(shape, k).run()


def improve_natively(shape: FixedChoice) -> None:
    """Search by the native core alone, where it is built."""
    for k in range(len(shape.tasks)):
        _Exact(shape, k).run_native()


def improve_by_cp_sat(shape: FixedChoice) -> None:
    """Search by CP-SAT alone, also where greedy met the bound."""
    for k in range(len(shape.tasks)):
        _Exact(shape, k).run_cp_sat()


class _Exact:
    """The search on one task of a shape."""

    def __init__(self, shape: FixedChoice, k: int) -> None:
        self.shape = shape
        self.task: Task = shape.tasks[k]
        self.k = k
        self.deadline = shape.deadline
        options = shape.run.options
        self.threads = options.threads
        self.cp_sat = Engine(self.task, self.peak, self.deadline, options.threads, options.seed)
        self.field = Field(self.task, self.deadline, options.seed)
        self.number = 0

    @property
    def peak(self) -> int:
        return self.shape.peaks[self.k]

    @property
    def target(self) -> int:
        """What this task must reach and no more: another task may hold the peak higher."""
        return self.shape.target

    @property
    def capacity(self) -> int | None:
        return self.shape.run.capacity

    @property
    def finished(self) -> bool:
        """Proven, hopeless, or out of time."""
        over = self.capacity is not None and self.target > self.capacity
        return self.peak <= self.target or over or self.deadline.passed

    def run(self) -> None:
        """The race, with CP-SAT beside it after a while; CP-SAT alone where the native core is not built."""
        if self.task.instance is None:
            return self.run_cp_sat(always=False)
        spent = due = 0.0
        while not self.finished:
            before = self.deadline.clock.now
            self._round([])
            spent += self.deadline.clock.now - before
            due = due or (NATIVE_SECONDS if self.field.exact else UNSURE_SECONDS)
            if spent >= due and not self.finished:
                self._ask_cp_sat(spent * (1 - NATIVE_SHARE))
                due = 2 * spent

    def run_native(self) -> None:
        """The race without CP-SAT."""
        while self.task.instance is not None and not self.finished:
            self._round([])

    def _ask_cp_sat(self, seconds: float) -> None:
        """Beside the race, or, where the native core cannot prove that there is no plan, with all workers."""
        if self.field.exact and len(self.task) > BESIDE_LIMIT:
            return
        if not self.cp_sat.ready():
            return
        if self.field.exact:
            order = FIXED_ORDERS[self.number // ROUND % len(FIXED_ORDERS)]
            self._round([self.cp_sat.fixed(self.target, order, seconds)])
        else:
            self._cp_sat_round(seconds)

    def run_cp_sat(self, always: bool = True) -> None:
        """CP-SAT alone, with limits that double."""
        if (self.finished and not always) or self.deadline.passed or not self.cp_sat.ready():
            return
        if always:
            self._take(self.cp_sat.decide(self.peak, self.deadline.left), at_par=True)
        limit = 0.5
        while not self.finished:
            self._cp_sat_round(limit)
            limit *= 2

    def _cp_sat_round(self, seconds: float) -> None:
        self._decide(self.target, seconds)
        self._climb(seconds / 2)
        if not self.finished:
            self._take(self.cp_sat.minimise(self.shape.bases[self.k], self.target, seconds))

    def _round(self, beside: list[Job]) -> None:
        """One round of the race."""
        numbers = range(self.number, self.number + ROUND)
        self.number += ROUND
        native = probes(self.field, numbers, self.target, self.peak, self.capacity)
        jobs: list[Job] = [*beside, *native]
        for answer in race(jobs, self.threads, self.deadline, self._ends):
            self._take(answer)

    def _ends(self, answer: Answer) -> bool:
        """Does this answer prove the task's optimum, or move its bound?"""
        if answer.verdict is Verdict.INFEASIBLE:
            return True
        return answer.bases is not None and self.task.peak(answer.bases) <= self.target

    def _climb(self, seconds: float) -> None:
        """Probe capacities between the bound and the peak: feasible ones are scattered, so try several."""
        low, high = self.target, self.peak
        rungs = {low + (high - low) * i // 4 for i in (1, 2, 3)}
        if self.capacity is not None and low < self.capacity < high:
            rungs.add(self.capacity)
        for rung in sorted(rungs):
            if self.target < rung < self.peak and not self.finished:
                self._decide(rung, seconds)

    def _decide(self, capacity: int, seconds: float) -> None:
        self._take(self.cp_sat.decide(capacity, seconds))

    def _raise_bound(self, bound: int, engine: str) -> None:
        if bound > self.shape.bounds[self.k]:
            self.shape.bounds[self.k] = self._next_peak(bound)
            self.shape.proofs[self.k] = engine
            self.shape.run.report(self.shape.peak, self.shape.bound, engine)

    def _next_peak(self, bound: int) -> int:
        """The smallest value of at least ``bound`` that a peak of this task can have."""
        tops = {int(top) for top in self.task.top % self.task.unit}
        return min(bound + (top - bound) % self.task.unit for top in tops)

    def _take(self, answer: Answer, at_par: bool = False) -> None:
        """Learn from an answer; ``at_par`` takes a placement that is no better as well."""
        if answer.lower_bound:
            self._raise_bound(answer.lower_bound, answer.engine)
        if answer.bases is None:
            return
        peak = self.task.peak(answer.bases)
        if peak < self.peak or (at_par and peak == self.peak):
            self.shape.take(self.k, answer.bases, peak, answer.engine)
            self.shape.run.report(self.shape.plan().peak, self.shape.bound, answer.engine)
