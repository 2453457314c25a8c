"""What holds the peak of the plans in a ``.pte``, and what other plans would need."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner import api
from planner.explain.peak import PeakReport, holders_of, load_without
from planner.explain.remedies import remedies
from planner.maps.memory_map import Panel
from planner.program.dataflow import Role
from planner.program.sharing import Policy
from planner.pte.accesses import Kept
from planner.pte.method import Method, read_method
from planner.pte.method_flow import placed_flow_of
from planner.pte.method_trace import trace
from planner.pte.program_file import ProgramFile
from solvers.place.bounds import heaviest_step
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.run import Options
from solvers.search import solve


@dataclass(frozen=True)
class MethodPeaks:
    """One method.

    Attributes
    ----------
    name : str
    kept : str
        Why it could not be read; empty if it was.
    arenas : tuple of int
        Bytes, by mem_id, as in the file.
    reports : tuple of PeakReport
        One per arena that holds anything.
    panels : tuple of Panel
        The plan in the file and the best one, for each arena.
    """

    name: str
    kept: str
    arenas: tuple[int, ...]
    reports: tuple[PeakReport, ...] = ()
    panels: tuple[Panel, ...] = ()


def show(file: ProgramFile, options: Options) -> list[MethodPeaks]:
    """Look at every method of a program; one of which no plan can be made says why.

    Parameters
    ----------
    file : ProgramFile
    options : Options
        Of the search for the best plan.
    """
    out = []
    for plan in file.program.execution_plan:
        arenas = tuple(int(n) for n in plan.non_const_buffer_sizes)
        try:
            out.append(_Method(read_method(file, plan), arenas, options).shown())
        except (Kept, *api.REFUSALS) as why:
            out.append(MethodPeaks(plan.name, str(why), arenas))
    return out


class _Method:
    def __init__(self, method: Method, arenas: tuple[int, ...], options: Options) -> None:
        self.method = method
        self.arenas = arenas
        self.options = options
        trace(method)  # names the op that cannot be understood
        self.flow, self.offsets = placed_flow_of(method)
        numbers = {name: k for k, name in method.names.items()}
        self.steps = {
            k: f"{op.name}, instruction {numbers[op.name]}" if op.name in numbers else op.name
            for k, op in enumerate(self.flow.ops)
        }

    def shown(self) -> MethodPeaks:
        whole = api.plan(self.flow, api.Request(Policy(frozenset()), options=replace(self.options, time_limit=0.0)))
        best = api.plan(self.flow, api.Request(options=self.options))
        reports, panels = [], []
        for arena, problem in sorted(whole.problems.items()):
            if problem.buffers:
                found = self._arena(arena, problem, best)
                reports.append(found[0])
                panels += found[1]
        return MethodPeaks(self.method.plan.name, "", self.arenas, tuple(reports), tuple(panels))

    def _arena(self, arena: int, problem: Problem, best: api.Plan) -> tuple[PeakReport, list[Panel]]:
        """``problem`` is the arena's without any sharing that the file does not have already."""
        active = tuple(range(len(problem.colocations)))
        groups = problem.groups(active)
        step, load = heaviest_step(groups)
        holders = holders_of(groups, step, self._why)
        result = best.results[arena]
        greedy = solve(problem, "greedy", replace(self.options, progress=None))
        alive = {h.id: h.nbytes for h in holders}
        plans = {
            "first-fit greedy, sharing as in the file": (greedy.peak or 0, str(greedy.status)),
            "best found, concats and views in place, results on operands": (result.peak or 0, str(result.status)),
        }
        said = remedies(self.flow, best.decisions, alive, step, lambda ids: load_without(groups, ids))
        title = f"method {self.method.plan.name!r}, arena {arena}"
        op = self.steps.get(step, "the start" if step < 0 else "the end")
        size = self.arenas[arena]
        report = PeakReport(title, size, step, op, load, holders, result.lower_bound, plans, said)
        panels = [Panel(f"{title}, as in the file", problem, self._as_in_the_file(problem), None, self.steps)]
        if result.solution is not None:
            panels.append(
                Panel(f"{title}, best", best.problems[arena], result.solution, result.lower_bound, self.steps)
            )
        return report, panels

    def _as_in_the_file(self, problem: Problem) -> Solution:
        active = tuple(range(len(problem.colocations)))
        return Solution({b.id: self.offsets[b.id] for b in problem.buffers}, active)

    def _why(self, i: str, end: int) -> str:
        """Why a tensor is alive, from its birth to the last need of its bytes, by whatever shows them."""
        flow = self.flow
        t, own = flow.by_id[i], flow.lifetimes[i][1]
        if t.role is Role.STATE:
            return "state: it lives throughout"
        writer = flow.writer.get(i)
        born = "an input" if t.role is Role.INPUT else f"by {writer.target}" if writer else "a part"
        if end > len(flow.ops):
            return f"{born}, returned"
        if end < 1:
            return f"{born}, never used"
        through = " through a view" if end > own else ""
        return f"{born}, until {flow.ops[end - 1].name}{through}"
