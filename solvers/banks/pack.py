"""What is in one bank, placed: by the stages of the usual pipeline, within the bank first, then as low as can be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from solvers.banks.bank import Bank, aligned
from solvers.choose.stages import Search
from solvers.deadline import Deadline
from solvers.place.fixed_choice import FixedChoice
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution
from solvers.run import Options, Run, VerifiedPlan
from solvers.verifier import verify


class Packing:
    """Some buffers in a bank.

    Parameters
    ----------
    problem : Problem
        With required colocations only.
    bank : Bank
    here : collection of str
        The buffers in the bank; with one all that it is tied to.
    deadline : Deadline
    options : Options
    known : dict of str to int, optional
        Offsets that are known to be legal: of these buffers, or of more.
    """

    def __init__(
        self,
        problem: Problem,
        bank: Bank,
        here: Collection[str],
        deadline: Deadline,
        options: Options,
        known: Mapping[str, int] | None = None,
    ) -> None:
        buffers = [aligned(b, bank) for b in problem.buffers if b.id in here]
        ties = [c for c in problem.colocations if c.part in here]
        self.problem = Problem(buffers, ties, bank.size, bank.name)
        self.run = Run(self.problem, replace(options, progress=None), clock=deadline.clock)
        self.shape = FixedChoice(self.run, self.problem.required, deadline)
        if self.collision:
            return
        self.shape.greedy()
        if known is not None:
            solution = Solution({b.id: known[b.id] for b in buffers}, self.problem.required)
            peak = verify(self.run.open_problem, solution)
            if peak < self.shape.peak:
                self.shape.whole = VerifiedPlan(solution, peak, "cp-sat")

    @property
    def collision(self) -> bool:
        """Do pinned buffers overlap? Then there is no plan."""
        return self.shape.collision

    @property
    def fits(self) -> bool:
        """Is there a plan within the bank?"""
        assert self.problem.capacity is not None
        return not self.collision and self.shape.peak <= self.problem.capacity

    @property
    def impossible(self) -> bool:
        """Is it proven that there is none?"""
        assert self.problem.capacity is not None
        return self.collision or self.shape.bound > self.problem.capacity

    @property
    def offsets(self) -> Mapping[str, int]:
        """Of the best plan, whether it is within the bank or not."""
        return self.shape.plan().solution.offsets

    def squeeze(self, search: Search, deadline: Deadline) -> None:
        """Search for a plan within the bank, and no lower."""
        assert self.problem.capacity is not None
        self._search(search, deadline, self.problem.capacity)

    def lower(self, search: Search, deadline: Deadline) -> None:
        """Search for the smallest peak."""
        self._search(search, deadline, 0)

    def _search(self, search: Search, deadline: Deadline, enough: int) -> None:
        if not self.collision and not deadline.passed:
            self.shape.deadline, self.shape.enough = deadline, enough
            if self.shape.peak > self.shape.target:
                search(self.shape)

    def over(self) -> set[str]:
        """The buffers that end above the bank in the best plan."""
        assert self.problem.capacity is not None
        offsets, size = self.offsets, self.problem.capacity
        return {b.id for b in self.problem.buffers if offsets[b.id] + b.size > size}

    def result(self) -> Result:
        """The outcome, like that of `solvers.search.solve`."""
        shape = self.shape
        if self.collision:
            return self.run.result(None, shape.bound, "pinned buffers", proof="pinned buffers")
        return self.run.result(
            shape.plan(), shape.bound, shape.engine, proof=shape.proof, certificate=shape.certificate()
        )
