"""Which optional colocations to have active: a CP-SAT model of booleans that knows loads but no offsets.

A relaxation: what it proves holds for every legal plan. That a choice contradicts itself is mostly found out later,
when the groups are built, and added as a clause (`solvers.choose.contradictions`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from solvers.choose.atoms import Atoms, Steps
from solvers.choose.presence import Literal, Logic, Presence, key_of
from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.problem.buffers import Kind
from solvers.problem.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

SIZE_LIMIT = 2**53
"""CP-SAT adds up in 64 bits and hands out its bound as a double: with larger numbers no model is built."""

ATOMS_LIMIT, SECONDS_PER_ATOM = 200_000, 6e-5
"""Above this many atoms in all steps together no model is built, nor if this takes more than the time left."""

PATH_LIMIT = 100_000
"""Atoms looked at for clauses between hand-offs and those who still show the bytes."""


@dataclass(frozen=True, slots=True)
class Aim:
    """Minimise ``peak_weight * peak + copy_weight * bytes copied``, with neither above its limit."""

    peak_weight: int
    copy_weight: int
    max_peak: int
    max_copied: int

    def score(self, peak: int, copied: int) -> int:
        """What is to be minimised."""
        return self.peak_weight * peak + self.copy_weight * copied


@dataclass(frozen=True, slots=True)
class Clause:
    """Not all of ``off`` may be active, unless one of ``unless`` is."""

    off: tuple[int, ...]
    unless: tuple[int, ...] = ()


def saves(problem: Problem, k: int) -> int:
    """Bytes of copying that a colocation avoids."""
    c = problem.colocations[k]
    return problem.by_id[c.part].size if c.saves is None else c.saves


def copied(problem: Problem, active: Sequence[int]) -> int:
    """Bytes still copied if these are active."""
    on = set(active)
    return sum(saves(problem, k) for k in range(len(problem.colocations)) if k not in on)


class Choices:
    """What is known about the choices of one problem: atoms, steps, and the clauses that every legal choice keeps."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.atoms = Atoms(problem)
        self.steps = Steps(self.atoms)
        self.found: list[Clause] = []
        self.required = frozenset(problem.required)

    def buildable(self, aim: Aim, floor: int, seconds: float) -> bool:
        """Are the numbers and the steps whose load may be above ``floor`` few enough for a model, in this time?"""
        problem, steps = self.problem, self.steps
        most = sum(b.size + b.alignment + (b.offset or 0) for b in problem.buffers)
        if aim.score(max(most, aim.max_peak), copied(problem, ())) + most > SIZE_LIMIT:
            return False
        matter = [t for n, t in enumerate(steps.times) if steps.bytes_at(n, int(steps.apart[n])) > floor]
        live = 0
        for i, mine in self.atoms.of.items():
            b = problem.buffers[i]
            live += len(mine) * (bisect_left(matter, b.end) - bisect_left(matter, b.start))
        return live <= ATOMS_LIMIT and live * SECONDS_PER_ATOM <= seconds

    def literals(self, logic: Logic) -> list[Literal]:
        """One per tie, with all clauses that are known."""
        model = logic.model
        active: list[Literal] = []
        for k in range(len(self.problem.colocations)):
            free = k not in self.required and k not in self.atoms.impossible
            active.append(model.new_bool_var(f"tie{k}") if free else k in self.required)
        self.add_clauses(logic, active, [*self.known, *self.found])
        for few in self.exclusive:
            model.add_at_most_one([logic.any_of([active[k] for k in ties]) for ties in few])
        return active

    def add_clauses(self, logic: Logic, active: Sequence[Literal], clauses: Sequence[Clause]) -> None:
        """Add clauses to a model with these literals."""
        for c in clauses:
            logic.model.add_bool_or([*(logic.negate(active[k]) for k in c.off), *(active[k] for k in c.unless)])

    @cached_property
    def exclusive(self) -> list[tuple[tuple[int, ...], ...]]:
        """Sets of ties of which no two may be active (those of one inner tuple count as one)."""
        return [*self._writers(), *self._heirs()]

    def _writers(self) -> dict[tuple[tuple[int, ...], ...], None]:
        """An atom shows what one writer wrote: in a tree no two ways in can lead to the same one."""
        out: dict[tuple[tuple[int, ...], ...], None] = {}
        for a, around in enumerate(self.atoms.near):
            if len(around) > 1 and self.atoms.clusters[a] in self._trees:
                ways = [tuple(k for k in ties if self.atoms.gives(b, a, k)) for b, ties in around.items()]
                if len(into := tuple(way for way in ways if way)) > 1:
                    out[into] = None
        return out

    def _heirs(self) -> dict[tuple[tuple[int, ...], ...], None]:
        """An atom is handed over to one successor, and taken over from one predecessor, that are not the same bytes."""
        out: dict[tuple[tuple[int, ...], ...], None] = {}
        atoms = self.atoms
        for handoffs in atoms.handoffs.values():
            ends: dict[int, dict[int, int]] = {}  # atom -> the predecessor, or the successor's cluster -> hand-off
            for k in handoffs:
                for a, b in atoms.links[k]:
                    if atoms.clusters[a] != atoms.clusters[b]:
                        ends.setdefault(a, {})[-1 - b] = k
                        ends.setdefault(b, {})[atoms.clusters[a]] = k
            out |= dict.fromkeys(tuple((k,) for k in few.values()) for few in ends.values() if len(few) > 1)
        return out

    def compatible(self, ties: Sequence[int]) -> list[int]:
        """As many as keep the clauses that are known, the first before the others."""
        on: dict[int, None] = dict.fromkeys(self.required)
        sets: dict[int, list[int]] = {}
        for n, few in enumerate(self.exclusive):
            for k in {k for some in few for k in some}:
                sets.setdefault(k, []).append(n)
        clauses: dict[int, list[Clause]] = {}
        for c in self.known:
            for k in c.off:
                clauses.setdefault(k, []).append(c)
        for k in ties:
            clash = any(
                k not in some and any(other in on for other in some)
                for n in sets.get(k, ())
                for some in self.exclusive[n]
            )
            if k not in self.atoms.impossible and not clash:
                on[k] = None
                if any(all(other in on for other in c.off) for c in clauses.get(k, ())):
                    del on[k]
        return [k for k in ties if k in on]

    @cached_property
    def _trees(self) -> set[int]:
        """Clusters in which no two ways lead from one atom to another."""
        nodes: dict[int, int] = {}
        edges: dict[int, int] = {}
        for a, around in enumerate(self.atoms.near):
            c = self.atoms.clusters[a]
            nodes[c] = nodes.get(c, 0) + 1
            edges[c] = edges.get(c, 0) + len(around)
        return {c for c, n in nodes.items() if edges[c] == 2 * (n - 1)}

    @cached_property
    def known(self) -> list[Clause]:
        """A hand-off forbids that another buffer shows those bytes beyond its step."""
        out: dict[tuple[int, ...], None] = {}
        atoms, buffers, work = self.atoms, self.problem.buffers, 0
        for k, c in enumerate(self.problem.colocations):
            if c.kind is not Kind.HANDOFF:
                continue
            step = self.problem.by_id[c.part].start
            for new, old in atoms.links.get(k, ()):
                if atoms.clusters[new] == atoms.clusters[old]:
                    continue
                todo: list[tuple[int, int, tuple[int, ...]]] = [(old, -1, ())]
                while todo and work < PATH_LIMIT:
                    work += 1
                    here, last, path = todo.pop()
                    for there, ties in atoms.near[here].items():
                        if there in (last, old) or len(ties) > 1:
                            continue
                        way = path if ties[0] in self.required else (*path, ties[0])
                        if buffers[atoms.atoms[there].buffer].end > step:
                            out[(k, *way)] = None
                        elif len(way) < 3:
                            todo.append((there, here, way))
        return [Clause(off) for off in out]


@dataclass(frozen=True)
class Found:
    """What a model proved and proposes: ``bound`` of the aim's score and ``active``, None where it has none.
    If no choice keeps the limits, the bound is beyond them."""

    bound: int | None = None
    active: tuple[int, ...] | None = None


def choose(choices: Choices, aim: Aim, floor: int, run: CpRun, deadline: Deadline) -> Found:
    """Best choice by the aim, as far as loads and the clauses so far tell.

    Parameters
    ----------
    choices : Choices
    aim : Aim
    floor : int
        Proven floor of the peak, bytes.
    run : CpRun
    deadline : Deadline
    """
    from ortools.sat.python import cp_model

    if floor > aim.max_peak:
        return Found(aim.score(floor, 0))
    model = cp_model.CpModel()
    logic = Logic(model)
    active = choices.literals(logic)
    peak = model.new_int_var(floor, aim.max_peak, "peak")
    limit_loads(choices, Presence(logic, choices.atoms, active), model, peak, floor)
    model.minimize(score(choices, model, active, peak, aim))
    status = run.solve(model, deadline.left)
    deadline.clock.spend(run.work)
    if status == cp_model.INFEASIBLE:
        return Found(aim.score(aim.max_peak, aim.max_copied) + 1)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Found()
    return Found(round(run.solver.best_objective_bound), chosen(run.solver, active))


def limit_loads(
    choices: Choices, presence: Presence, model: cp_model.CpModel, peak: cp_model.IntVar, floor: int
) -> None:
    """The load of every step that can rise above the floor is within the peak."""
    steps, atoms = choices.steps, choices.atoms
    for n, t in enumerate(steps.times):
        if steps.bytes_at(n, int(steps.apart[n])) > floor:
            load: dict[int | None, int] = {}
            literals: dict[int | None, Literal] = {None: 1}
            for a, present in presence.at(t):
                if present is not False:
                    key = key_of(present)
                    literals[key] = 1 if key is None else present
                    load[key] = load.get(key, 0) + atoms.size(a)
            total = sum(cells * literals[key] for key, cells in load.items())
            model.add(total * atoms.cell <= peak + steps.pads[n])


def score(
    choices: Choices, model: cp_model.CpModel, active: Sequence[Literal], peak: cp_model.IntVar, aim: Aim
) -> cp_model.LinearExprT:
    """The aim as an expression; its limits become constraints."""
    copying = sum(saves(choices.problem, k) * (1 - x) for k, x in enumerate(active))
    if not isinstance(copying, int):
        model.add(copying <= aim.max_copied)
    return aim.peak_weight * peak + aim.copy_weight * copying


def chosen(solver: cp_model.CpSolver, active: Sequence[Literal]) -> tuple[int, ...]:
    """The ties that are active in a solution."""
    return tuple(k for k, x in enumerate(active) if (x if isinstance(x, bool) else solver.boolean_value(x)))
