"""The search for the best assignment, for one choice of colocations: greedy, then the best assignment by loads, then,
where that cannot be placed, one model with places.

Every assignment is packed by the usual pipeline, bank by bank, the fastest first; what sticks out of a bank moves on to
the next slower one that it may be in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from solvers.banks.bank import Bank, BankResult, Excess
from solvers.banks.density import by_density
from solvers.banks.limits import Limits
from solvers.banks.model import Assigned, Loads, Places, Setting, placeable, weights_in
from solvers.banks.pack import Packing
from solvers.choose.stages import Search
from solvers.deadline import Deadline
from solvers.problem.buffers import ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution, Status
from solvers.run import Options

MANY = 5_000
"""Groups: of more, only one plan is made greedily."""

GREEDY_SLACKS = (1.0, 0.95, 0.85)
SLACKS = (0.99, 0.98, 0.96, 0.93, 0.9)
"""Parts of the banks to fill where more cannot be placed."""


@dataclass(frozen=True)
class Asked:
    """What is asked, whatever the choice of colocations."""

    banks: tuple[Bank, ...]
    pins: Mapping[str, int]
    weights: Mapping[str, int]
    search: Search | None
    options: Options

    def check(self, problem: Problem) -> None:
        for i, k in self.pins.items():
            if i not in problem.by_id:
                raise ProblemError(f"buffer {i!r} is pinned to a bank, but no buffer of the problem")
            if not 0 <= k < len(self.banks):
                raise ProblemError(f"buffer {i!r} is pinned to bank {k}: there are {len(self.banks)} banks")
        for i, w in self.weights.items():
            if w < 0:
                raise ProblemError(f"the weight of buffer {i!r} is {w}: it must be at least 0")

    @property
    def trivial(self) -> tuple[int, ...]:
        """A ceiling of the weights: all in the first bank."""
        return sum(self.weights.values()), *(0 for _ in self.banks[1:])


def without(
    asked: Asked, status: Status, excess: Excess | None, deadline: Deadline, bounds: tuple[int, ...]
) -> BankResult:
    """The result where there is no plan."""
    nothing = (0,) * len(asked.banks)
    struck = deadline.clock.halted
    return BankResult(status, asked.banks, {}, None, (), (), nothing, bounds, excess, deadline.elapsed, struck)


@dataclass(frozen=True)
class _Plan:
    """Banks by group, and what is in each, placed."""

    bank_of: tuple[int, ...]
    packings: tuple[Packing, ...]
    weights: tuple[int, ...]

    @property
    def total(self) -> int:
        """Sum of the peaks, bytes."""
        return sum(p.shape.peak for p in self.packings)


class Assignment:
    """The search for one choice of colocations, all of them required."""

    def __init__(
        self, problem: Problem, asked: Asked, deadline: Deadline, ceiling: tuple[int, ...] | None = None
    ) -> None:
        self.problem = problem
        self.asked = asked
        self.deadline = deadline
        self.ground = Limits(problem, asked.banks, asked.pins, asked.weights)
        self.bounds = ceiling or asked.trivial
        self.best: _Plan | None = None
        self.infeasible = False
        self.excess: Excess | None = None
        self.whole: dict[int, Mapping[str, int]] = {}  # by bank: offsets of all that may be in it, where they fit

    @property
    def proven(self) -> bool:
        """Is the best plan's assignment the best there is?"""
        return self.best is not None and self.best.weights >= self.bounds

    def run(self) -> BankResult:
        """Greedy, the models, then the peaks."""
        ground = self.ground
        self.excess = ground.too_large() or (ground.overloaded(ground.setting) if ground.setting else None)
        if self.excess:
            return without(self.asked, Status.INFEASIBLE, self.excess, self.deadline, self.bounds)
        most = weights_in([banks[0] for banks in ground.allowed], ground.weights, len(self.asked.banks))
        self.bounds = min(self.bounds, most)
        for slack in GREEDY_SLACKS:
            ejected = self._fill(by_density(ground, slack), None, self.deadline)
            if self.best and (not ejected or self.deadline.passed or len(ground.groups) > MANY):
                break
        if self.asked.search is not None and not self.proven:
            self._by_loads(self.asked.search)
        if self.asked.search is not None and not (self.proven or self.infeasible):
            self._by_places()
        return self._finished() if self.best else self._failed()

    def _pack(self, k: int, groups: Iterable[int], known: Mapping[str, int] | None = None) -> Packing:
        here = {i for n in groups for i, _ in self.ground.groups[n].members}
        known = known or self.whole.get(k)
        return Packing(self.problem, self.asked.banks[k], here, self.deadline, self.asked.options, known)

    def _fill(
        self,
        bank_of: Sequence[int],
        search: Search | None,
        deadline: Deadline,
        known: Mapping[int, Mapping[str, int]] | None = None,
    ) -> bool:
        """Pack an assignment, and keep the plan if it is the best; what sticks out of a bank moves on.

        Returns
        -------
        bool
            Was there anything that stuck out?
        """
        banks = len(self.asked.banks)
        sets = [{n for n, k in enumerate(bank_of) if k == bank} for bank in range(banks)]
        packings: list[Packing] = []
        ejected = False
        for k in range(banks):
            if self.best and deadline.passed:
                return ejected
            packing = self._pack(k, sets[k], (known or {}).get(k))
            if not packing.fits and search is not None:
                packing.squeeze(search, deadline.part(1 / (banks - k)))
            if not packing.fits:
                ejected = True
                if not self._eject(k, sets, packing):
                    return True
                packing = self._pack(k, sets[k], packing.offsets)
            packings.append(packing)
        bank_of = tuple(next(k for k in range(banks) if n in sets[k]) for n in range(len(bank_of)))
        plan = _Plan(bank_of, tuple(packings), weights_in(bank_of, self.ground.weights, banks))
        best = self.best
        if best is None or (plan.weights, -plan.total) > (best.weights, -best.total):
            self.best = plan
        return ejected

    def _eject(self, k: int, sets: list[set[int]], packing: Packing) -> bool:
        """Move what sticks out to slower banks; False if that cannot be."""
        if len(sets) == 1 and packing.impossible:
            self.infeasible = True
        if packing.collision:
            return False
        over = packing.over()
        out = {n for n in sets[k] if any(i in over for i, _ in self.ground.groups[n].members)}
        for n in out:
            slower = [j for j in self.ground.allowed[n] if j > k]
            if not slower:
                needed = packing.shape.bound if self.infeasible else packing.shape.peak
                excess = self.ground.over(k, needed, sets[k], self.infeasible)
                if self.excess is None or excess.excess < self.excess.excess:
                    self.excess = excess
                return False
            sets[slower[0]].add(n)
        sets[k] -= out
        return True

    def _by_loads(self, search: Search) -> None:
        """The best assignment by loads; if it cannot be placed, those that fill less of the banks."""
        setting, options = self.ground.setting, self.asked.options
        if setting is None or not setting.buildable(self.deadline):
            return
        model = Loads(setting)
        if self.best:
            model.hint(self.best.bank_of)
        found = model.maximise(self._known, self.bounds, self.deadline.part(0.3), options)
        self._learn(found)
        if found.bank_of is None or not self._fill(found.bank_of, search, self.deadline.part(0.4)):
            return
        for slack in SLACKS:
            if self.proven or self.deadline.passed:
                break
            model = Loads(setting, slack)
            model.hint(found.bank_of)
            found = model.maximise(self._known, self.bounds, self.deadline.part(0.1), options)
            if found.bank_of is None or not self._fill(found.bank_of, search, self.deadline.part(0.2)):
                break

    @property
    def _known(self) -> tuple[int, ...] | None:
        return self.best.weights if self.best else None

    def _learn(self, found: Assigned) -> None:
        """What a model without slack proved."""
        self.bounds = min(self.bounds, found.bounds)
        self.infeasible |= found.infeasible

    def _by_places(self) -> None:
        """Banks and places in one model. A bank that holds all that may be in it needs no places."""
        ground, groups = self.ground, list(self.ground.inside)
        if ground.setting is None or not ground.setting.buildable(self.deadline):
            return
        for k in range(len(groups)):
            packing = self._pack(k, [n for n, banks in enumerate(ground.allowed) if k in banks])
            if packing.fits:
                groups[k], self.whole[k] = (), packing.offsets
        if not placeable(ground.setting, groups, self.deadline):
            return
        model = Places(ground.setting, groups)
        if self.best:
            model.hint(self.best.bank_of)
            model.hint_places(self.best.bank_of, self._bases(self.best))
        found = model.maximise(self._known, self.bounds, self.deadline.part(0.8), self.asked.options)
        self._learn(found)
        if found.bank_of is not None:
            self._fill(found.bank_of, None, self.deadline, self._offsets(found))

    def _bases(self, plan: _Plan) -> dict[int, int]:
        """By group, bytes above its residue."""
        bases = {}
        for n, k in enumerate(plan.bank_of):
            g = self.ground.inside[k][n]
            assert g is not None
            i, at = g.members[0]
            bases[n] = plan.packings[k].offsets[i] - at - g.residue
        return bases

    def _offsets(self, found: Assigned) -> dict[int, dict[str, int]]:
        """By bank, of the groups that the model placed; the empty ones as low as they may be."""
        assert found.bank_of is not None
        out: dict[int, dict[str, int]] = {}
        for n, k in enumerate(found.bank_of):
            g = self.ground.inside[k][n]
            if k not in self.whole and g is not None:
                base = self.ground.end(k, n) - g.extent
                base = found.bases[n] + g.residue if n in found.bases else base
                out.setdefault(k, {}).update({i: base + at for i, at in g.members})
        return out

    def _finished(self) -> BankResult:
        """The smallest peaks for the best assignment; every bank's plan is judged."""
        assert self.best is not None
        results: list[Result] = []
        packings = self.best.packings
        for k, packing in enumerate(packings):
            if self.asked.search is not None:
                packing.lower(self.asked.search, self.deadline.part(1 / (len(packings) - k)))
            results.append(packing.result())
        offsets = {i: at for p in packings for i, at in p.offsets.items()}
        bank_of = {b.id: k for k, p in enumerate(packings) for b in p.problem.buffers}
        optimal = self.proven and all(r.status is Status.OPTIMAL for r in results)
        return BankResult(
            Status.OPTIMAL if optimal else Status.FEASIBLE,
            self.asked.banks,
            bank_of,
            Solution(offsets, self.problem.required),
            tuple(p.problem for p in packings),
            tuple(results),
            self.best.weights,
            self.bounds,
            None,
            self.deadline.elapsed,
            self.deadline.clock.halted,
        )

    def _failed(self) -> BankResult:
        """Say what is missing; what is proven if it can be."""
        ground = self.ground
        status = Status.INFEASIBLE if self.infeasible else Status.UNKNOWN
        if self.infeasible and len(self.asked.banks) > 1 and ground.setting is not None:
            self.excess = least_excess(ground, ground.setting, self.deadline, self.asked.options) or self.excess
        return without(self.asked, status, self.excess, self.deadline, self.bounds)


def least_excess(ground: Limits, setting: Setting, deadline: Deadline, options: Options) -> Excess | None:
    """How much larger one bank would have to be, by loads: the slowest, if that helps; None if it is not known."""
    for k in reversed(range(len(ground.banks))):
        found = Loads(setting, open_bank=k).least(deadline, options)
        if found is not None and found[0] > ground.banks[k].size:
            return ground.over(k, found[0], [n for n, j in enumerate(found[1]) if j == k], True)
    return None
