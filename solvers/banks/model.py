"""CP-SAT models of banks: which group goes to which bank, by loads alone, or together with its place.

The first is small and its linear relaxation strong: one worker that cuts proves it in milliseconds. What it proposes
can nearly always be placed, and then all is proven. Where it cannot, the second model decides: optional intervals, one
no-overlap per section and bank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from solvers.banks.loads import Key, LoadRow
from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.place.cp_sat import SECONDS_PER_MEMBER, members, sections
from solvers.problem.groups import Group
from solvers.problem.reduce import Block, Task, reduce_groups
from solvers.run import Options

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

SIZE_LIMIT = 2**53
"""CP-SAT hands out its bound as a double: with larger sums no model is built."""

PLACING_LIMIT = 200_000
"""Intervals in all sections and banks: above it no model with places is built."""


@dataclass(frozen=True)
class Setting:
    """What both models know.

    Attributes
    ----------
    sizes : tuple of int
        By bank, bytes.
    allowed : sequence of tuple of int
        By group, the banks that it may be in.
    weights : sequence of int
        By group.
    rows : sequence of list of LoadRow
        By bank.
    common : list of LoadRow
        Without what banks ask of alignments.
    """

    sizes: tuple[int, ...]
    allowed: Sequence[tuple[int, ...]]
    weights: Sequence[int]
    rows: Sequence[Sequence[LoadRow]]
    common: Sequence[LoadRow]

    @property
    def most(self) -> tuple[int, ...]:
        """A ceiling of the weights: every group in the first bank that it may be in."""
        return weights_in([banks[0] for banks in self.allowed], self.weights, len(self.sizes))

    def buildable(self, deadline: Deadline) -> bool:
        """Are the numbers small enough for CP-SAT, and is there time to build a model?"""
        entries = sum(len(row.need) for rows in self.rows for row in rows)
        largest = max((sum(row.need.values()) for rows in self.rows for row in rows), default=0)
        small = max(sum(self.weights), largest, *self.sizes) <= SIZE_LIMIT
        return small and entries * SECONDS_PER_MEMBER < deadline.left


@dataclass(frozen=True)
class Assigned:
    """What a model found.

    Attributes
    ----------
    bank_of : tuple of int or None
        By group.
    bounds : tuple of int
        A ceiling of the weights by bank, compared as tuples.
    infeasible : bool
        It is proven that there is no assignment.
    bases : dict of int to int
        By group, if it was placed as well: bytes above its residue.
    """

    bank_of: tuple[int, ...] | None
    bounds: tuple[int, ...]
    infeasible: bool = False
    bases: Mapping[int, int] = field(default_factory=dict)


def weights_in(bank_of: Sequence[int], weights: Sequence[int], banks: int) -> tuple[int, ...]:
    """The weight in each bank."""
    out = [0] * banks
    for k, w in zip(bank_of, weights, strict=True):
        out[k] += w
    return tuple(out)


class Loads:
    """Literals for banks, and the loads.

    Parameters
    ----------
    setting : Setting
    slack : float
        The part of each bank that may be used. The bounds hold for 1.
    open_bank : int, optional
        This bank is as large as it must be.
    """

    def __init__(self, setting: Setting, slack: float = 1.0, open_bank: int | None = None) -> None:
        from ortools.sat.python import cp_model

        self.setting = setting
        self.model = cp_model.CpModel()
        self.nothing = self.model.new_constant(0)
        self.x: list[dict[int, Any]] = []
        self.any: dict[tuple[int, Key], Any] = {}
        self.values: list[int] = []
        for banks in setting.allowed:
            self.x.append({k: self.model.new_bool_var("") for k in banks})
            self.model.add_exactly_one(self.x[-1].values())
        self.needed = self.model.new_int_var(0, SIZE_LIMIT, "size of the open bank")
        for k, rows in enumerate(setting.rows):
            for row in rows:
                self._limit(k, row, self.needed if k == open_bank else int(slack * setting.sizes[k]))

    def _limit(self, k: int, row: LoadRow, size: Any) -> None:
        need = [(lit, n) for key, n in row.need.items() if (lit := self._one_of(k, key)) is not None]
        if size is self.needed or sum(n for _, n in need) > size + row.pad:
            self.model.add(sum((n * lit for lit, n in need), self.nothing) <= size + row.pad)

    def _one_of(self, k: int, key: Key) -> Any:
        """Is one of these groups in bank ``k``? None if none can be."""
        some = [self.x[g][k] for g in key if k in self.x[g]]
        if len(some) < 2:
            return some[0] if some else None
        if (k, key) not in self.any:
            self.any[k, key] = self.model.new_bool_var("")
            for lit in some:
                self.model.add_implication(lit, self.any[k, key])
        return self.any[k, key]

    def _weight(self, k: int) -> Any:
        """What is in bank ``k``."""
        pairs = zip(self.setting.weights, self.x, strict=True)
        return sum((w * x[k] for w, x in pairs if k in x and w), self.nothing)

    def hint(self, bank_of: Sequence[int]) -> None:
        """Start from an assignment."""
        for n, x in enumerate(self.x):
            for k, lit in x.items():
                self.model.add_hint(lit, bank_of[n] == k)

    def _bank_of(self) -> tuple[int, ...] | None:
        """The assignment of the last solution."""
        if not self.values:
            return None
        return tuple(next(k for k, lit in x.items() if self.values[lit.index]) for x in self.x)

    def _solver(self, deadline: Deadline, options: Options) -> CpRun:
        run = CpRun(deadline, 1, options.seed)
        run.solver.parameters.linearization_level = 2
        return run

    def maximise(
        self, known: tuple[int, ...] | None, ceiling: tuple[int, ...], deadline: Deadline, options: Options
    ) -> Assigned:
        """As much weight as can be in bank after bank.

        Parameters
        ----------
        known : tuple of int, optional
            Weights that are known to be possible.
        ceiling : tuple of int
            No weights are larger.
        deadline : Deadline
        options : Options
        """
        from ortools.sat.python import cp_model

        bounds: list[int] = []
        tight = True  # are all bounds so far reached?
        last = max(len(ceiling) - 1, 1)  # the rest is in the last bank
        for k in range(last):
            weight = self._weight(k)
            at_most = ceiling[k] if tight and tuple(bounds) == ceiling[:k] else sum(self.setting.weights)
            if known is None or known[k] < at_most:
                self.model.add(weight <= at_most)
                self.model.add(weight >= (known[k] if known else 0))
                self.model.maximize(weight)
                run = self._solver(deadline, options)
                status = run.solve(self.model, deadline.left / (last - k))
                deadline.clock.spend(run.work)
                if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                    self._take(run.solver)
                    known = weights_in(self._bank_of() or (), self.setting.weights, len(ceiling))
                    at_most = min(at_most, round(run.solver.best_objective_bound))
                elif known is None:
                    return Assigned(None, ceiling, status == cp_model.INFEASIBLE)
            self.model.add(weight >= known[k])
            bounds.append(at_most if tight else sum(self.setting.weights))
            tight = tight and known[k] == at_most
        if len(ceiling) > 1:
            bounds.append(sum(self.setting.weights) - (sum(bounds) if tight else 0))
        return Assigned(self._bank_of(), tuple(bounds), bases=self._bases())

    def least(self, deadline: Deadline, options: Options) -> tuple[int, tuple[int, ...]] | None:
        """How large the open bank must be at least, bytes, and an assignment for which loads allow that; None if it is
        not known."""
        from ortools.sat.python import cp_model

        self.model.minimize(self.needed)
        run = self._solver(deadline, options)
        status = run.solve(self.model, deadline.left)
        deadline.clock.spend(run.work)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        self._take(run.solver)
        return round(run.solver.best_objective_bound), self._bank_of() or ()

    def _take(self, solver: cp_model.CpSolver) -> None:
        """Keep a solution, and start the next search from it."""
        self.values = list(solver.response_proto.solution)
        self.model.clear_hints()
        for n, value in enumerate(self.values):
            self.model.add_hint(self.model.get_int_var_from_proto_index(n), value)

    def _bases(self) -> dict[int, int]:
        return {}


class Places(Loads):
    """Banks and places in one model.

    Parameters
    ----------
    setting : Setting
    groups : sequence of list of Group or None
        By bank; an empty list for a bank in which all that may be there can be placed.
    """

    def __init__(self, setting: Setting, groups: Sequence[Sequence[Group | None]]) -> None:
        super().__init__(setting)
        self.bases: dict[
            tuple[int, int], tuple[Any, int]
        ] = {}  # group and bank: variable, and bytes by which it counts
        for k in range(len(setting.sizes)):
            for task in tasks_in(groups[k], k, setting.allowed):
                self._place(k, task)

    def _place(self, k: int, task: Task) -> None:
        size = self.setting.sizes[k]
        for b in task.blocks:
            low, high = _range(task, b, size)
            if low > high:  # cannot be: the group is not allowed here
                self.model.add(self.x[b.group][k] == 0)
            q = self.model.new_int_var(low, max(low, high), "")
            self.bases[b.group, k] = q, b.step * task.unit
        made: dict[tuple[int, int, int], Any] = {}
        for section in sections(task):
            intervals = []
            for n, ranges in section.items():
                b = task.blocks[n]
                for low, high in ranges:
                    if (n, low, high) not in made:
                        start = self.bases[b.group, k][0] * b.step + low
                        made[n, low, high] = self.model.new_optional_fixed_size_interval_var(
                            start, high - low, self.x[b.group][k], ""
                        )
                    intervals.append(made[n, low, high])
            if len(section) > 1:
                self.model.add_no_overlap(intervals)

    def hint_places(self, bank_of: Sequence[int], bases: Mapping[int, int]) -> None:
        """Start from places, bytes above the residue by group."""
        for (g, k), (q, unit) in self.bases.items():
            self.model.add_hint(q, bases[g] // unit if bank_of[g] == k else 0)

    def _solver(self, deadline: Deadline, options: Options) -> CpRun:
        run = CpRun(deadline, options.threads, options.seed)
        run.solver.parameters.linearization_level = 0
        return run

    def _bases(self) -> dict[int, int]:
        """Of the groups that are placed in the last solution."""
        bank_of = self._bank_of() or ()
        placed = {g: self.bases[g, k] for g, k in enumerate(bank_of) if (g, k) in self.bases}
        return {g: self.values[q.index] * unit for g, (q, unit) in placed.items()}


def _range(task: Task, b: Block, size: int) -> tuple[int, int]:
    """The lowest and the highest base, in steps of the block; nothing if the first is above the second."""
    highest = task.highest_base(b, size) // b.step
    return (0, highest) if b.base is None else (b.base // b.step, min(highest, b.base // b.step))


def tasks_in(groups: Sequence[Group | None], k: int, allowed: Sequence[tuple[int, ...]]) -> tuple[Task, ...]:
    """The tasks of all groups that may be in bank ``k``."""
    nothing = Group((), (), 1, 0, None, 0)
    return reduce_groups([g if g and k in banks else nothing for g, banks in zip(groups, allowed, strict=False)])


def placeable(setting: Setting, groups: Sequence[Sequence[Group | None]], deadline: Deadline) -> bool:
    """Are the intervals few enough for a model with places, and is there time to build it?"""
    count = sum(members(t) for k in range(len(groups)) for t in tasks_in(groups[k], k, setting.allowed))
    return count <= PLACING_LIMIT and setting.buildable(deadline) and count * SECONDS_PER_MEMBER < deadline.left
