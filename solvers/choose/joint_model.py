"""Choice and placement in one CP-SAT model, for small problems where neither can be decided without the other.

As in `solvers.place.cp_sat` one variable per rigid group, here of the required colocations only, and one no-overlap
per step; the interval of an atom is there only if the atom is present (`solvers.choose.presence`), and an active tie
fixes the distance of its two buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvers.choose.contradictions import contradictions
from solvers.choose.load_model import Aim, Choices, chosen, limit_loads, score
from solvers.choose.presence import Literal, Logic, Presence, key_of
from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.problem.groups import Group
from solvers.problem.result import Solution
from solvers.run import Options

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(frozen=True)
class JointAnswer:
    """``bound``: no placement has a smaller score; ``solution``: not yet verified. None where there is none."""

    bound: int | None = None
    solution: Solution | None = None


class Joint:
    """The model for one aim.

    Parameters
    ----------
    choices : Choices
    aim : Aim
    floor : int
        Proven floor of the peak, bytes.
    """

    def __init__(self, choices: Choices, aim: Aim, floor: int) -> None:
        from ortools.sat.python import cp_model

        self.choices = choices
        self.aim = aim
        self.model = cp_model.CpModel()
        self.logic = Logic(self.model)
        self.active = choices.literals(self.logic)
        self.peak = self.model.new_int_var(floor, max(floor, aim.max_peak), "peak")
        self.presence = Presence(self.logic, choices.atoms, self.active)
        self.offsets: dict[str, cp_model.LinearExprT] = {}
        self.bases: list[cp_model.IntVar] = []
        self._place()
        self._tie()
        self._no_overlap()
        limit_loads(choices, self.presence, self.model, self.peak, floor)
        self.score = score(choices, self.model, self.active, self.peak, aim)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Of the required colocations."""
        return self.choices.problem.groups(self.choices.problem.required)

    def _place(self) -> None:
        """``base = modulus * q + residue`` for every group."""
        for n, g in enumerate(self.groups):
            high = (self.aim.max_peak - g.extent - g.residue) // g.modulus
            low = 0 if g.base is None else (g.base - g.residue) // g.modulus
            high = high if g.base is None else min(low, high)
            if low > high:
                self.model.add_bool_or([])
                high = low
            q = self.model.new_int_var(low, high, f"base{n}")
            base = g.modulus * q + g.residue
            self.bases.append(q)
            self.offsets |= {i: base + at for i, at in g.members}
            self.model.add(base + g.extent <= self.peak)

    def _tie(self) -> None:
        for k, c in enumerate(self.choices.problem.colocations):
            if not isinstance(self.active[k], bool):
                away = self.offsets[c.part] - self.offsets[c.whole]
                self.model.add(away == c.at).only_enforce_if(self.active[k])

    def _no_overlap(self) -> None:
        made: dict[tuple[int, int, int, int | None], cp_model.IntervalVar] = {}
        for t in self.choices.steps.times:
            runs: dict[tuple[int, int, int, int | None], Literal] = {}
            last: tuple[int, int, int, int | None] = (-1, 0, 0, None)
            for a, present in sorted(self.presence.at(t), key=lambda x: x[0]):
                if present is False:
                    continue
                atom, key = self.choices.atoms.atoms[a], key_of(present)
                low = atom.low
                if last[0] == atom.buffer and last[2:] == (low, key):
                    low = last[1]
                    del runs[last]
                last = (atom.buffer, low, atom.high, key)
                runs[last] = present
            for run, present in runs.items():
                if run not in made:
                    made[run] = self._interval(*run[:3], present)
            if len(runs) > 1:
                self.model.add_no_overlap([made[r] for r in runs])

    def _interval(self, buffer: int, low: int, high: int, present: Literal) -> cp_model.IntervalVar:
        """In bytes, sizes rounded up to cells."""
        cell = self.choices.atoms.cell
        start = self.offsets[self.choices.problem.buffers[buffer].id] + low * cell
        if present is True:
            return self.model.new_fixed_size_interval_var(start, (high - low) * cell, "")
        return self.model.new_optional_fixed_size_interval_var(start, (high - low) * cell, present, "")

    def solve(self, most: int, minimise: bool, deadline: Deadline, options: Options) -> JointAnswer:
        """Find a placement whose score is at most ``most``: any, or the best."""
        from ortools.sat.python import cp_model

        bound = None
        while not deadline.passed:
            model = self.model.clone()
            model.add(self.score <= most)
            if minimise:
                model.minimize(self.score)
            run = CpRun(deadline, options.threads, options.seed)
            solver = run.solver
            solver.parameters.linearization_level = 0
            status = run.solve(model, deadline.left)
            deadline.clock.spend(run.work)
            if status == cp_model.INFEASIBLE:
                return JointAnswer(most + 1)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                break
            if minimise:
                bound = round(solver.best_objective_bound)
            active = chosen(solver, self.active)
            clauses = contradictions(self.choices, active, deadline)
            if not clauses:
                return JointAnswer(bound, Solution({i: solver.value(x) for i, x in self.offsets.items()}, active))
            self.choices.found += clauses
            self.choices.add_clauses(self.logic, self.active, clauses)
        return JointAnswer(bound)
