"""A problem under one choice of active colocations: its tasks, their bounds, and the best placement of each."""

from __future__ import annotations

from collections.abc import Sequence

from solvers.bounds import load_bound
from solvers.deadline import Deadline
from solvers.greedy import pinned_collide, portfolio
from solvers.groups import Group
from solvers.reduce import reduce_groups, restore
from solvers.result import Solution
from solvers.run import Plan, Run
from solvers.stock import stock_applies, stock_greedy
from solvers.verify import verify


class Shape:
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
        self.bases: list[list[int]] = []
        self.engines: list[str] = []
        self.whole: Plan | None = None
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
        mine = max([self.floor, *(t.peak(x) for t, x in zip(self.tasks, self.bases, strict=True))])
        return min(mine, self.whole.peak) if self.whole else mine

    @property
    def engine(self) -> str:
        """Who found what holds the peak."""
        if self.whole and self.whole.peak <= self.peak:
            return self.whole.engine
        peaks = [t.peak(x) for t, x in zip(self.tasks, self.bases, strict=True)]
        return self.engines[peaks.index(max(peaks))] if peaks else "bound"

    def plan(self) -> Plan:
        """The best plan in hand, verified."""
        if self.whole and self.whole.peak <= self.peak:
            return self.whole
        placed = {
            b.group: x * t.unit + self.groups[b.group].residue
            for t, bases in zip(self.tasks, self.bases, strict=True)
            for b, x in zip(t.blocks, bases, strict=True)
        }
        solution = Solution(restore(self.groups, placed), self.active)
        return Plan(solution, verify(self.run.open_problem, solution), self.engine)

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
                self.whole = Plan(solution, peak, "stock greedy")
        self.run.report(self.plan().peak, self.bound, self.engine)

    def tied_by_height(self) -> list[set[int]]:
        """The active colocations, group by group; those of the group that ends highest first."""
        tops = {
            b.group: x * t.unit + b.top
            for t, bases in zip(self.tasks, self.bases, strict=True)
            for b, x in zip(t.blocks, bases, strict=True)
        }
        of = {i: k for k in tops for i, _ in self.groups[k].members}
        ties: dict[int, set[int]] = {}
        for k in self.active:
            if (group := of.get(self.run.problem.colocations[k].part)) is not None:
                ties.setdefault(group, set()).add(k)
        return [ties[k] for k in sorted(ties, key=lambda k: (-tops[k], k))]
