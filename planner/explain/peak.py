"""What holds the peak of a plan: the step, the buffers that live there and why, and what would do instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from solvers.place.bounds import heaviest_step
from solvers.problem.groups import Group
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution


@dataclass(frozen=True)
class Holder:
    """One buffer in the step of the peak.

    Attributes
    ----------
    id : str
    nbytes : int
        Bytes of it that are needed in the step.
    why : str
        Why it is alive.
    """

    id: str
    nbytes: int
    why: str


@dataclass(frozen=True)
class PeakReport:
    """What holds an arena's peak.

    Attributes
    ----------
    title : str
        Which arena.
    peak : int
        Bytes of the plan that is looked at.
    step : int
        The first of the steps in which most bytes are needed.
    op : str
        What runs there, if known.
    load : int
        Bytes needed there: what the peak exceeds it by are holes.
    holders : tuple of Holder
        Largest first.
    bound : int
        No plan needs less, bytes, whatever is shared.
    plans : dict of str to (int, str)
        Bytes and status of other plans, by name.
    remedies : tuple of str
        What would lower the peak.
    """

    title: str
    peak: int
    step: int
    op: str
    load: int
    holders: tuple[Holder, ...]
    bound: int
    plans: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    remedies: tuple[str, ...] = ()

    @property
    def holes(self) -> int:
        """Bytes of the arena that no one needs in the step of the peak."""
        return self.peak - self.load


def load_without(groups: Sequence[Group], ids: Collection[str]) -> int:
    """The largest load, bytes, if some buffers were not there."""
    kept = [g._replace(segments=tuple(s for s in g.segments if s.writer not in ids)) for g in groups]
    return heaviest_step(kept)[1]


def holders_of(groups: Sequence[Group], step: int, why: Callable[[str, int], str]) -> tuple[Holder, ...]:
    """The buffers whose bytes are needed in a step, largest first.

    Parameters
    ----------
    groups : sequence of Group
        Under the plan's active colocations.
    step : int
    why : callable
        Says why a buffer is alive, given its id and the step before which its bytes are last needed.
    """
    needed: dict[str, int] = defaultdict(int)
    ends: dict[str, int] = {}
    for s in (s for g in groups for s in g.segments):
        if s.start <= step < s.end:
            needed[s.writer] += s.high - s.low
            ends[s.writer] = max(ends.get(s.writer, s.end), s.end)
    made = (Holder(i, n, why(i, ends[i])) for i, n in needed.items())
    return tuple(sorted(made, key=lambda h: (-h.nbytes, h.id)))


def _lifetime(problem: Problem, i: str, end: int) -> str:
    b = problem.by_id[i]
    shown = f"; its bytes are shown by others until {end}" if end > b.end else ""
    return f"lives in steps [{b.start}, {b.end}){shown}"


def report_problem(
    problem: Problem, solution: Solution, results: Mapping[str, Result], title: str = "", bound: int | None = None
) -> PeakReport:
    """What holds the peak of a plan of a problem file.

    Parameters
    ----------
    problem : Problem
    solution : Solution
        The plan that is looked at.
    results : dict of str to Result
        Other plans by name.
    title : str
    bound : int, optional
        Bytes; else the largest of the results'.
    """
    groups = problem.groups(solution.active)
    step, load = heaviest_step(groups)
    peak = max((solution.offsets[b.id] + b.size for b in problem.buffers), default=0)
    plans = {name: (r.peak or 0, str(r.status)) for name, r in results.items()}
    bound = max((r.lower_bound for r in results.values()), default=load) if bound is None else bound
    holders = holders_of(groups, step, lambda i, end: _lifetime(problem, i, end))
    return PeakReport(title, peak, step, "", load, holders, bound, plans)
