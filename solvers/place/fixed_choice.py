"""A problem under one choice of active colocations: its tasks, their bounds, and the best placement of each."""

from __future__ import annotations

from collections.abc import Sequence

from solvers.deadline import Deadline
from solvers.place.bounds import certificate, load_bound
from solvers.place.first_fit import pinned_collide, portfolio
from solvers.place.stock import stock_applies, stock_greedy, stock_seconds
from solvers.problem.groups import Group
from solvers.problem.reduce import Column, reduce_groups, restore
from solvers.problem.result import Certificate, Solution
from solvers.run import Run, VerifiedPlan
from solvers.verifier import peak_of, verify

NO_TIME = 0.05
"""Seconds that greedy may take beyond the limit."""


class FixedChoice:
    """The search for one choice of active colocations: its tasks, and the best placement of each.

    ``enough`` is a peak, bytes, below which no search is worth while.
    """

    def __init__(self, run: Run, active: Sequence[int], deadline: Deadline) -> None:
        self.run = run
        self.deadline = deadline
        self.active = tuple(active)
        self.groups: tuple[Group, ...] = run.problem.groups(self.active)
        self.tasks = reduce_groups(self.groups)
        self.bounds = [load_bound(t).value for t in self.tasks]
        self.floor = max([self._floor_of_empty(), *self.bounds])
        self.collision = any(pinned_collide(t) for t in self.tasks)
        self.bases: list[Column] = []
        self.peaks: list[int] = []
        self.proofs = ["load"] * len(self.tasks)
        self.engines: list[str] = []
        self.whole: VerifiedPlan | None = None
        self.enough = 0

    def _floor_of_empty(self) -> int:
        """Where groups without segments end: they are put as low as they may be."""
        ends = [(g.base if g.base is not None else g.residue) + g.extent for g in self.groups if not g.segments]
        return max(ends, default=0)

    @property
    def bound(self) -> int:
        """Proven floor for this choice, bytes."""
        return max([self.floor, *self.bounds])

    @property
    def target(self) -> int:
        """A peak at which the search may stop, bytes."""
        return max(self.bound, self.enough)

    @property
    def peak(self) -> int:
        """Peak of the best placement, bytes."""
        return min(self._own_peak, self.whole.peak) if self.whole else self._own_peak

    @property
    def _own_peak(self) -> int:
        """Peak of the tasks' placements together, bytes."""
        return max([self.floor, *self.peaks])

    @property
    def engine(self) -> str:
        """Who found what holds the peak."""
        if self.whole and self.whole.peak <= self.peak:
            return self.whole.engine
        return self.engines[self.peaks.index(max(self.peaks))] if self.peaks else "bound"

    @property
    def proof(self) -> str:
        """Who proved the bound: ``load``, or an engine that found no plan below it."""
        highest = max(self.bounds, default=0)
        return self.proofs[self.bounds.index(highest)] if highest == self.bound and self.bounds else "load"

    def certificate(self) -> Certificate | None:
        """The sum that is the bound; None where a search proved it."""
        if not self.bounds or self.proof != "load" or max(self.bounds) < self.bound:
            return None
        return certificate(self.groups, self.tasks[self.bounds.index(self.bound)])

    def take(self, k: int, bases: Column, peak: int, engine: str) -> None:
        """Let a placement be that of task ``k``."""
        self.bases[k], self.peaks[k], self.engines[k] = bases, peak, engine
        if self.whole is not None and self._own_peak <= self.whole.peak:
            self.whole = None

    def plan(self) -> VerifiedPlan:
        """The best plan in hand, verified."""
        if self.whole is None:
            self.whole = self._plan()
        return self.whole

    def _plan(self) -> VerifiedPlan:
        placed = {
            group: base + self.groups[group].residue
            for t, bases in zip(self.tasks, self.bases, strict=True)
            for group, base in zip(t.group.tolist(), (bases * t.unit).tolist(), strict=True)
        }
        solution = Solution(restore(self.groups, placed), self.active)
        return VerifiedPlan(solution, verify(self.run.open_problem, solution), self.engine)

    def greedy(self) -> None:
        """The first plan: the best first-fit of each task, or stock greedy's where that is better."""
        for t in self.tasks:
            best: tuple[int, str, Column] | None = None
            for name, bases in portfolio(t):
                if best is None or t.peak(bases) < best[0]:
                    best = (t.peak(bases), name, bases)
                if best[0] <= self.bound:
                    break
            assert best is not None  # the portfolio is never empty
            self.peaks.append(best[0])
            self.engines.append(best[1])
            self.bases.append(best[2])
        self.run.report(self.plan().peak, self.bound, self.engine)
        if not self.active and self.peak > self.bound and self._time_for_stock():
            solution = Solution(stock_greedy(self.run.problem))
            if peak_of(self.run.problem, solution) < self.peak:
                self.whole = VerifiedPlan(solution, verify(self.run.open_problem, solution), "stock greedy")
                self.run.report(self.whole.peak, self.bound, self.engine)

    def _time_for_stock(self) -> bool:
        """Can stock greedy plan this, and within the limit? On all but large problems it takes next to no time."""
        if not stock_applies(self.run.problem):
            return False
        seconds = stock_seconds(self.run.problem)
        if seconds >= self.deadline.left + NO_TIME:
            return False
        self.deadline.clock.spend(seconds)
        return True

    def tied_by_height(self) -> list[set[int]]:
        """The active colocations, group by group; those of the group that ends highest first."""
        tops = {
            group: top
            for t, bases in zip(self.tasks, self.bases, strict=True)
            for group, top in zip(t.group.tolist(), (bases * t.unit + t.top).tolist(), strict=True)
        }
        of = {i: k for k in tops for i, _ in self.groups[k].members}
        ties: dict[int, set[int]] = {}
        for k in self.active:
            if (group := of.get(self.run.problem.colocations[k].part)) is not None:
                ties.setdefault(group, set()).add(k)
        return [ties[k] for k in sorted(ties, key=lambda k: (-tops[k], k))]
