"""Every buffer into a bank: the one call.

With optional colocations a few choices of them are tried, and the best kept; what is proven of the assignment holds for
every choice, and what of the peaks for the choice that was taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice

from solvers.banks.assignment import Asked, Assignment, least_excess, without
from solvers.banks.bank import Bank, BankResult, Excess, check_banks
from solvers.banks.limits import Limits
from solvers.banks.model import Loads
from solvers.choose.load_model import saves
from solvers.choose.stages import Search
from solvers.deadline import Clock, Deadline
from solvers.place.improve import improve, improve_by_cp_sat
from solvers.problem.buffers import Colocation, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution, Status
from solvers.run import Options
from solvers.search import solve

SEARCHES: dict[str, Search | None] = {"auto": improve, "cp-sat": improve_by_cp_sat, "greedy": None}
"""How the banks are packed, by the name of the solver; ``greedy`` does not search for the best assignment either."""


FEW = 4
"""Of so many optional colocations every choice is tried before it is said that no plan was found."""


def solve_banks(
    problem: Problem,
    banks: Sequence[Bank],
    pins: Mapping[str, int] | None = None,
    weights: Mapping[str, int] | None = None,
    solver: str = "auto",
    options: Options | None = None,
    clock: Clock | None = None,
    active: Sequence[int] | None = None,
    make: Callable[[Sequence[int]], Problem] | None = None,
) -> BankResult:
    """Put every buffer into a bank, and find an offset there.

    Parameters
    ----------
    problem : Problem
        Without a capacity: each bank has its own.
    banks : sequence of Bank
        The fastest first.
    pins : dict of str to int, optional
        By buffer, the only bank that it may be in (index).
    weights : dict of str to int, optional
        By buffer; its size where not given.
    solver : str
        A name from `SEARCHES`.
    options : Options, optional
        Those of the solver; the objective is that of banks.
    clock : Clock, optional
        Where several solves share one.
    active : sequence of int, optional
        A choice of colocations to begin with: the best without banks. It is looked for where it is not given.
    make : callable, optional
        Makes the problem of a choice, in which exactly these colocations are left, and required: it may align buffers
        more strictly than the problem, that must not ask for more than any choice does.

    Returns
    -------
    BankResult
        Verified.

    Raises
    ------
    ValueError
        If the solver is not known, the problem has a capacity, a pin or a weight is out of range, or no bank can align
        a buffer as it must be.
    """
    if solver not in SEARCHES:
        raise ValueError(f"solver is {solver!r}: it must be one of {', '.join(SEARCHES)}")
    if problem.capacity is not None:
        raise ProblemError(f"the problem has a capacity, {problem.capacity}: with banks each bank has its own")
    check_banks(banks)
    options = options or Options()
    asked = Asked(tuple(banks), dict(pins or {}), _all_weights(problem, weights), SEARCHES[solver], options)
    asked.check(problem)
    deadline = Deadline(options.time_limit, clock or options.clock())
    if len(problem.required) == len(problem.colocations) and make is None:
        return Assignment(problem, asked, deadline).run()
    if active is None:
        limited = replace(options, time_limit=deadline.left * 0.25, progress=None)
        found = solve(problem, solver, limited, deadline.clock)
        active = found.solution.active if found.solution else problem.required
    return _Choices(problem, asked, make or functools.partial(_required, problem), deadline).best(tuple(active))


def _all_weights(problem: Problem, weights: Mapping[str, int] | None) -> dict[str, int]:
    given = weights or {}
    return {b.id: given.get(b.id, b.size) for b in problem.buffers}


def _required(problem: Problem, active: Sequence[int]) -> Problem:
    ties = [replace(problem.colocations[k], required=True) for k in active]
    return Problem(problem.buffers, ties, name=problem.name)


class _Choices:
    """The search over a few choices of optional colocations."""

    def __init__(
        self, problem: Problem, asked: Asked, make: Callable[[Sequence[int]], Problem], deadline: Deadline
    ) -> None:
        self.problem = problem
        self.asked = asked
        self.make = make
        self.deadline = deadline
        self.ceiling, self.excess, self.infeasible = _ceiling(problem, asked, deadline.part(0.2))
        self.found: dict[tuple[int, ...], BankResult] = {}
        self.wrong: ProblemError | None = None

    def best(self, active: tuple[int, ...]) -> BankResult:
        """The best of: all of ``active``; none that is not required; of ``active``, those that the plan without tears
        not apart; and those that hold together what is in the first bank."""
        untied = self.problem.required
        self._try(active, 0.4)
        self._try(untied, 0.5)
        if plan := self._plan_of(untied):
            self._try(self._kept(active, lambda c: plan[c.part] == plan[c.whole]), 0.5)
        if plan := self._plan_of(active):
            self._try(self._kept(active, lambda c: plan[c.part] == 0), 1.0)
        if all(r.solution is None for r in self.found.values()):
            self._try_others(active)
        if not self.found and self.wrong is not None:
            raise self.wrong
        return self._result()

    def _try(self, active: tuple[int, ...], share: float) -> None:
        """Search for one choice, unless that cannot help."""
        reached = any(r.weights >= self.ceiling for r in self.found.values())
        if reached or self.infeasible or active in self.found or (self.found and self.deadline.passed):
            return
        try:
            choice = self.make(active)
            self.found[active] = Assignment(choice, self.asked, self.deadline.part(share), self.ceiling).run()
        except ProblemError as error:  # the ties contradict each other, or the alignments of all banks
            self.wrong = error

    def _try_others(self, active: tuple[int, ...]) -> None:
        """No choice fits: a tie may ask for more room than it saves. Every other choice, if there are few; else
        ``active`` without one tie."""
        loose = [k for k, c in enumerate(self.problem.colocations) if not c.required]
        left_out: Iterable[tuple[int, ...]] = ((k,) for k in active if k in loose)
        if len(loose) <= FEW:
            left_out = chain.from_iterable(combinations(loose, n) for n in range(len(loose)))
        every = active if len(loose) > FEW else tuple(range(len(self.problem.colocations)))
        for out in islice(left_out, 2**FEW):
            self._try(tuple(k for k in every if k not in out), 0.5)
            if any(r.solution is not None for r in self.found.values()):
                break

    def _plan_of(self, active: tuple[int, ...]) -> Mapping[str, int]:
        """The banks under a choice; nothing without a plan."""
        return self.found[active].bank_of if active in self.found else {}

    def _kept(self, active: tuple[int, ...], holds: Callable[[Colocation], bool]) -> tuple[int, ...]:
        ties, required = self.problem.colocations, set(self.problem.required)
        return tuple(k for k in active if k in required or holds(ties[k]))

    def _key(self, active: tuple[int, ...]) -> tuple[bool, tuple[int, ...], int, int]:
        """The better one is larger: more weight in faster banks, less copying, smaller peaks."""
        result = self.found[active]
        if result.solution is None:
            return False, (), 0, -(result.excess.excess if result.excess else 0)
        saved = sum(saves(self.problem, k) for k in active)
        return True, result.weights, saved, -sum(r.peak or 0 for r in result.results)

    def _result(self) -> BankResult:
        """In the words of the problem, and with what is proven for every choice."""
        active = max(self.found, key=self._key, default=())
        best = self.found.get(active)
        if best is None or best.solution is None:
            excess = self.excess or (best.excess if best else None)
            if self.infeasible:
                return without(self.asked, Status.INFEASIBLE, excess, self.deadline, self.ceiling)
            excess = replace(excess, proven=False) if excess else None
            return without(self.asked, Status.UNKNOWN, excess, self.deadline, self.ceiling)
        status = best.status if best.weights >= self.ceiling else Status.FEASIBLE
        solution = Solution(best.solution.offsets, active)
        seconds, struck = self.deadline.elapsed, self.deadline.clock.halted
        return replace(best, status=status, solution=solution, bounds=self.ceiling, wall_time=seconds, struck=struck)


def _ceiling(problem: Problem, asked: Asked, deadline: Deadline) -> tuple[tuple[int, ...], Excess | None, bool]:
    """The most weight under any choice; or why there is no plan."""
    ground = Limits(problem, asked.banks, asked.pins, asked.weights)
    most = asked.trivial
    if excess := ground.too_large():
        return most, excess, True
    setting = ground.setting_of_all_choices
    if setting is None:
        return most, None, False
    if excess := ground.overloaded(setting):
        return most, excess, True
    if asked.search is None or not setting.buildable(deadline):
        return setting.most, None, False
    found = Loads(setting).maximise(None, setting.most, deadline, asked.options)
    excess = least_excess(ground, setting, deadline, asked.options) if found.infeasible else None
    return found.bounds, excess, found.infeasible
