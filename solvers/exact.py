"""Exact search on one task: decide at the bound, climb a ladder of capacities, minimise; with limits that double."""

from __future__ import annotations

from solvers.cp_sat import Answer, Engine, Verdict
from solvers.reduce import Task
from solvers.shape import Shape


def improve(shape: Shape, always: bool = False) -> None:
    """Search on each task that holds the peak up; ``always`` also where greedy met the bound."""
    for k in range(len(shape.tasks)):
        _Exact(shape, k).run(always)


class _Exact:
    """The search on one task of a shape."""

    def __init__(self, shape: Shape, k: int) -> None:
        self.shape = shape
        self.task: Task = shape.tasks[k]
        self.k = k
        self.deadline = shape.deadline
        options = shape.run.options
        self.engine = Engine(self.task, self.peak, self.deadline, options.threads, options.seed)

    @property
    def peak(self) -> int:
        return self.task.peak(self.shape.bases[self.k])

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
                self._take(self.engine.minimise(self.shape.bases[self.k], self.target, limit))
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
        if bound > self.shape.bounds[self.k]:
            self.shape.bounds[self.k] = self._next_peak(bound)
            self.shape.run.report(self.shape.peak, self.shape.bound, engine)

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
        self.shape.bases[self.k] = answer.bases
        self.shape.engines[self.k] = answer.engine
        if better:
            self.shape.plan()
            self.shape.run.report(self.shape.peak, self.shape.bound, answer.engine)
