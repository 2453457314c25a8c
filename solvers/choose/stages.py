"""The search over choices of optional colocations: greedy first, then choice by loads, then both in one model.

Each stage has an aim (`solvers.choose.load_model.Aim`). A choice model without offsets proves a floor and proposes a
choice; the usual search packs that choice; if it does not meet the floor, and the problem is small enough, one model
decides both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from solvers.choose.contradictions import contradictions
from solvers.choose.joint_model import Joint
from solvers.choose.load_model import Aim, Choices, Found, choose, copied
from solvers.choose.most_sharing import most_sharing
from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.place.fixed_choice import FixedChoice
from solvers.problem.result import Result
from solvers.run import Objective, Run, VerifiedPlan
from solvers.verifier import verify

Search = Callable[[FixedChoice], None]
"""Improves a shape."""

ROUNDS = 30
"""Choices that one stage proposes before it gives up on contradictions."""

TRIALS, PLACED_LIMIT = 20, 2_000
"""Greedy undoes the ties of at most this many groups, and places at most this many buffers in all trials."""


class Chooser:
    """One solve of a problem with optional colocations.

    Parameters
    ----------
    run : Run
    search : callable, optional
        Improves a shape; none for greedy alone.
    always : bool
        Search also where greedy met the bound.
    """

    def __init__(self, run: Run, search: Search | None, always: bool = False) -> None:
        self.run = run
        self.problem = run.problem
        self.search = search
        self.always = always
        self.choices = Choices(run.problem)
        self.floor = run.proven = self.choices.steps.floor
        self.proof = "load under any choice"
        self.shapes: dict[tuple[int, ...], FixedChoice | None] = {}
        self.best: VerifiedPlan | None = None
        some = self.problem.buffers
        most = sum(b.size + (b.offset or 0) for b in some) + len(some) * math.lcm(*(b.alignment for b in some))
        limit = most if run.capacity is None else min(most, run.capacity)
        weight = Fraction(run.options.copy_weight).limit_denominator(1000)
        self.least_peak = Aim(1, 0, limit, copied(self.problem, ()))
        self.least_copied = replace(self.least_peak, peak_weight=0, copy_weight=1)
        self.least_sum = replace(self.least_peak, peak_weight=weight.denominator, copy_weight=weight.numerator)

    def solve(self) -> Result:
        """Greedy, then the stages of the objective, each within what the one before it reached."""
        self._first_plans()
        if self.always and self.best is not None:
            self._pack(self.best.solution.active, self.least_peak, self.floor, self.run.deadline.part(0.3))
        match self.run.options.objective:
            case Objective.PEAK:
                floor = self._stage(self.least_peak, 0.8)
                least = self._stage(replace(self.least_copied, max_peak=self._peak), 1.0) if self._within else 0
                optimal, saved_most = self._peak <= floor, self._copied <= least
            case Objective.COPIES:
                least = self._stage(self.least_copied, 0.8)
                within = replace(self.least_peak, max_copied=self._copied) if self._within else self.least_peak
                floor = self._stage(within, 1.0)
                saved_most = self._copied <= least
                optimal = saved_most and self._peak <= floor
            case Objective.WEIGHTED:
                least = self._stage(self.least_sum, 1.0)
                optimal = self._score(self.least_sum) <= least
                saved_most = self._copied == 0 or (optimal and self.least_sum.copy_weight > 0)
        engine = self.best.engine if self.best else "pinned buffers"
        impossible = self.floor > self.least_peak.max_peak
        return self.run.result(self.best, self.floor, engine, saved_most, optimal, impossible, self.proof)

    @property
    def _within(self) -> bool:
        """Is there a plan within the capacity?"""
        return self.best is not None and (self.run.capacity is None or self.best.peak <= self.run.capacity)

    @property
    def _peak(self) -> int:
        return self.best.peak if self.best and self._within else self.least_peak.max_peak + 1

    @property
    def _copied(self) -> int:
        if self.best and self._within:
            return copied(self.problem, self.best.solution.active)
        return self.least_peak.max_copied + 1

    def _score(self, aim: Aim) -> int:
        return aim.score(self._peak, self._copied)

    def _key(self, plan: VerifiedPlan) -> tuple[int, ...]:
        peak, copying = plan.peak, copied(self.problem, plan.solution.active)
        over = int(self.run.capacity is not None and peak > self.run.capacity)
        match self.run.options.objective:
            case Objective.PEAK:
                return over, peak, copying
            case Objective.COPIES:
                return (over, peak, copying) if over else (over, copying, peak)
            case Objective.WEIGHTED:
                return over, self.least_sum.score(peak, copying), peak

    def _take(self, plan: VerifiedPlan) -> None:
        if self.best is None or self._key(plan) < self._key(self.best):
            self.best = plan
            self.run.report(plan.peak, self.floor, plan.engine)

    def _shape(self, active: Sequence[int]) -> FixedChoice | None:
        """With greedy's plan; None if pinned buffers collide."""
        key = tuple(active)
        if key not in self.shapes:
            shape = FixedChoice(self.run, key, self.run.deadline)
            self.shapes[key] = None if shape.collision else shape
            if not shape.collision:
                shape.greedy()
                self._take(shape.plan())
        return self.shapes[key]

    def _first_plans(self) -> None:
        """As much sharing as goes together; none; and what lies between where that helps."""
        most = self._shape(most_sharing(self.choices))
        if most is None or most.peak > self.floor:
            self._shape(self.problem.required)
            if most is not None:
                self._undo(most)

    def _undo(self, shape: FixedChoice) -> None:
        """Undo the ties of one group after the other, the highest first, where that lowers the peak."""
        trials = min(TRIALS, PLACED_LIMIT // max(1, len(self.problem.buffers)))
        required = set(self.problem.required)
        todo = shape.tied_by_height()
        while todo and trials and shape.peak > self.floor:
            trials -= 1
            ties = todo.pop(0) - required
            other = self._shape([k for k in shape.active if k not in ties]) if ties else None
            if other is not None and other.peak < shape.peak:
                shape, todo = other, other.tied_by_height()

    def _stage(self, aim: Aim, share: float) -> int:
        """Work towards one aim; returns the proven floor of its score."""
        bound = aim.score(self.floor, 0)
        deadline = self.run.deadline.part(share)
        if self.search is None or self._score(aim) <= bound:
            return bound
        found = self._choose(aim, deadline.part(0.3))
        bound = self._raise(aim, bound, found.bound)
        if self._score(aim) > bound:
            second = self._choose(self._second(aim, bound), deadline.part(0.3))
            active = second.active or found.active
            if active is not None:
                self._pack(active, aim, bound, deadline.part(0.6))
        if self._score(aim) > bound:
            bound = self._decide_both(aim, bound, deadline.part(0.7))
        if self._score(aim) > bound and aim.peak_weight:
            active = self.best.solution.active if self.best else self.problem.required
            for choice in dict.fromkeys([active, self.problem.required]):
                if copied(self.problem, choice) <= aim.max_copied:
                    self._pack(choice, aim, bound, deadline.part(0.5))
        return bound

    def _raise(self, aim: Aim, bound: int, found: int | None) -> int:
        """The better of two floors of an aim's score; where it is one for every choice, that of the peak as well."""
        bound = max(bound, found or 0)
        if aim == self.least_peak:
            if bound > self.floor:
                self.proof = "cp-sat"
            self.floor = self.run.proven = max(self.floor, bound)
        return bound

    def _second(self, aim: Aim, bound: int) -> Aim:
        """Of the choices that reach ``bound``, the best by the other measure."""
        if aim.copy_weight == 0:
            return replace(aim, peak_weight=0, copy_weight=1, max_peak=min(bound, aim.max_peak))
        if aim.peak_weight == 0:
            return replace(aim, peak_weight=1, copy_weight=0, max_copied=min(bound, aim.max_copied))
        return aim

    def _choose(self, aim: Aim, deadline: Deadline) -> Found:
        """By loads alone; choices that contradict themselves are ruled out until one does not."""
        found = Found()
        for _ in range(ROUNDS):
            if deadline.passed or not self.choices.buildable(aim, self.floor, deadline.left):
                break
            options = self.run.options
            cp = CpRun(deadline, options.threads, options.seed)
            found = choose(self.choices, aim, self.floor, cp, deadline)
            if found.active is None or not (clauses := contradictions(self.choices, found.active, deadline)):
                return found
            self.choices.found += clauses
        return replace(found, active=None)

    def _pack(self, active: Sequence[int], aim: Aim, bound: int, deadline: Deadline) -> None:
        """Search for a plan of one choice that reaches ``bound``."""
        shape = self._shape(active)
        if shape is None or self.search is None or deadline.passed:
            return
        rest = bound - aim.copy_weight * copied(self.problem, active)
        shape.enough = rest // aim.peak_weight if aim.peak_weight else aim.max_peak
        shape.deadline = deadline
        self.search(shape)
        self._take(shape.plan())

    def _decide_both(self, aim: Aim, bound: int, deadline: Deadline) -> int:
        """Choice and placement in one model: at the bound, then as good as can be."""
        if deadline.passed or not self.choices.atoms.complete or not self.choices.buildable(aim, -1, deadline.left):
            return bound
        limit = min(aim.max_peak, self._peak) if aim.copy_weight == 0 else aim.max_peak
        joint = Joint(self.choices, replace(aim, max_peak=limit), self.floor)
        for minimise in (False, True):
            if self._score(aim) <= bound:
                break
            most = self._score(aim) - 1 if minimise else bound
            placed = joint.solve(most, minimise, deadline if minimise else deadline.part(0.5), self.run.options)
            if placed.solution is not None:
                engine = "cp-sat choice and placement"
                self._take(VerifiedPlan(placed.solution, verify(self.run.open_problem, placed.solution), engine))
            bound = self._raise(aim, bound, placed.bound)
        return bound
