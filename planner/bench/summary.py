"""What rows say together: the optimum of a problem, the excess over it, and each planner's record."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.bench.row import Row, RowStatus


@dataclass(frozen=True)
class Known:
    """What is known of a problem under one kind of sharing.

    Attributes
    ----------
    peak : int or None
        The smallest, bytes.
    lower_bound : int or None
        The highest, bytes.
    """

    peak: int | None
    lower_bound: int | None

    @property
    def status(self) -> RowStatus | None:
        """Is the smallest peak the optimum? None without a plan."""
        if self.peak is None:
            return None
        proven = self.lower_bound is not None and self.peak <= self.lower_bound
        return RowStatus.OPTIMAL if proven else RowStatus.FEASIBLE

    def excess(self, peak: int) -> tuple[float | None, str]:
        """``peak / floor - 1``, and what the floor is: the ``optimum`` if it is proven, else the ``bound``."""
        against = "optimum" if self.status is RowStatus.OPTIMAL else "bound"
        floor = self.peak if against == "optimum" else self.lower_bound
        if floor is None or (floor == 0 and peak > 0):
            return None, ""
        return (peak / floor - 1 if floor else 0.0), against


def known_of(rows: Iterable[Row]) -> Known:
    """From the rows of one problem and one kind of sharing."""
    solved = [r for r in rows if r.solved]
    peaks = [r.peak for r in solved if r.peak is not None]
    bounds = [r.lower_bound for r in solved if r.lower_bound is not None]
    return Known(min(peaks, default=None), max(bounds, default=None))


def with_excess(rows: Sequence[Row]) -> list[Row]:
    """The rows of one problem, each with its excess over what is known under its kind of sharing.

    A row that claims a bound above a verified peak is wrong, and counts no more.
    """
    rows = [_refuted(row, rows) for row in rows]
    known = {kinds: known_of([r for r in rows if r.sharing == kinds]) for kinds in {r.sharing for r in rows}}
    out = []
    for row in rows:
        excess, against = known[row.sharing].excess(row.peak) if row.solved and row.peak is not None else (None, "")
        out.append(replace(row, excess=excess, against=against))
    return out


def _refuted(row: Row, rows: Iterable[Row]) -> Row:
    peaks = [(r.peak, r.planner) for r in rows if r.solved and r.sharing == row.sharing and r.peak is not None]
    least = min(peaks, default=None)
    if least is None or not row.solved or row.lower_bound is None or row.lower_bound <= least[0]:
        return row
    why = f"it claims a bound of {row.lower_bound}, but {least[1]} has a verified plan with peak {least[0]}"
    return replace(row, status=RowStatus.WRONG, error=why)


@dataclass(frozen=True)
class Record:
    """What one planner did on many problems.

    Attributes
    ----------
    planner : str
    problems, solved, proven, best : int
        Problems asked, plans that the verifier accepts, peaks proven least, and peaks that no planner of the same
        sharing beats.
    mean_excess : float or None
        Geometric mean of ``peak / floor``, less 1.
    worst_excess : float or None
    worst_problem : str
    over_bound : int
        Problems whose excess is over the bound, as no optimum is proven.
    median_seconds, total_seconds : float or None
        Of the problems solved.
    failures : dict of str to int
        How often each of the other outcomes.
    """

    planner: str
    problems: int
    solved: int
    proven: int
    best: int
    mean_excess: float | None
    worst_excess: float | None
    worst_problem: str
    over_bound: int
    median_seconds: float | None
    total_seconds: float | None
    failures: dict[str, int]


def record_of(planner: str, rows: Sequence[Row], every: Sequence[Row]) -> Record:
    """The record of one planner's rows among those of all planners."""
    least: dict[tuple[str, str], int] = {}
    for r in every:
        if r.solved and r.peak is not None:
            key = (r.problem, r.sharing)
            least[key] = min(least.get(key, r.peak), r.peak)
    solved = [r for r in rows if r.solved]
    excesses = [(r.excess, r.problem) for r in solved if r.excess is not None]
    worst = max(excesses, default=(None, ""), key=lambda e: (e[0], e[1]))
    seconds = [r.seconds for r in solved if r.seconds is not None]
    failures: dict[str, int] = {}
    for r in rows:
        if not r.solved:
            failures[r.status] = failures.get(r.status, 0) + 1
    return Record(
        planner,
        len(rows),
        len(solved),
        sum(r.status is RowStatus.OPTIMAL for r in rows),
        sum(r.peak == least[r.problem, r.sharing] for r in solved),
        geometric_mean([e for e, _ in excesses]),
        worst[0],
        worst[1],
        sum(r.against == "bound" for r in solved),
        statistics.median(seconds) if seconds else None,
        sum(seconds) if seconds else None,
        failures,
    )


def geometric_mean(excesses: Sequence[float]) -> float | None:
    """The geometric mean of ``1 + excess``, less 1."""
    if not excesses:
        return None
    return math.exp(sum(math.log1p(e) for e in excesses) / len(excesses)) - 1
