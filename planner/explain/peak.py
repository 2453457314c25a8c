"""What holds the peak of a plan: the step, the buffers that live there and why, and what would do instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from solvers.problem.groups import Group, Segment
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


def loads(groups: Sequence[Group]) -> dict[int, int]:
    """Bytes needed from a step on, for every step in which that changes."""
    change: dict[int, int] = defaultdict(int)
    for g in groups:
        for s in g.segments:
            change[s.start] += s.high - s.low
            change[s.end] -= s.high - s.low
    out, total = {}, 0
    for step in sorted(change):
        total += change[step]
        out[step] = total
    return out


def heaviest_step(groups: Sequence[Group]) -> tuple[int, int]:
    """The first step in which most bytes are needed, and how many; (0, 0) if none ever are."""
    every = loads(groups)
    step = max(every, key=lambda k: (every[k], -k), default=0)
    return step, every.get(step, 0)


def load_without(problem: Problem, active: Sequence[int], ids: Collection[str]) -> int:
    """The largest load, bytes, if some buffers were not there."""
    groups = problem.groups(tuple(active))
    kept = [g._replace(segments=tuple(s for s in g.segments if s.writer not in ids)) for g in groups]
    return heaviest_step(kept)[1]


def holders_of(
    problem: Problem, active: Sequence[int], step: int, why: Callable[[str, int], str] | None = None
) -> tuple[Holder, ...]:
    """The buffers whose bytes are needed in a step, largest first.

    Parameters
    ----------
    problem : Problem
    active : sequence of int
        Indices of the active colocations.
    step : int
    why : callable, optional
        Says why a buffer is alive, given its id and the step before which its bytes are last needed; else its lifetime
        is said.
    """
    needed: dict[str, int] = defaultdict(int)
    ends: dict[str, int] = {}
    for s in _segments(problem, active):
        if s.start <= step < s.end:
            needed[s.writer] += s.high - s.low
            ends[s.writer] = max(ends.get(s.writer, s.end), s.end)
    said = why or (lambda i, end: _lifetime(problem, i, end))
    made = (Holder(i, n, said(i, ends[i])) for i, n in needed.items())
    return tuple(sorted(made, key=lambda h: (-h.nbytes, h.id)))


def _segments(problem: Problem, active: Sequence[int]) -> list[Segment]:
    return [s for g in problem.groups(tuple(active)) for s in g.segments]


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
    step, load = heaviest_step(problem.groups(tuple(solution.active)))
    peak = max((solution.offsets[b.id] + b.size for b in problem.buffers), default=0)
    plans = {name: (r.peak or 0, str(r.status)) for name, r in results.items()}
    bound = max((r.lower_bound for r in results.values()), default=load) if bound is None else bound
    holders = holders_of(problem, solution.active, step)
    return PeakReport(title, peak, step, "", load, holders, bound, plans)
