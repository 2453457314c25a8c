"""The tables that `arena bench` prints: one line per problem, one per planner."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from planner.bench.row import Row
from planner.bench.summary import known_of, record_of


def problem_table(rows: Sequence[Row], planners: Sequence[str], every: Sequence[Row]) -> Table:
    """Every problem: each planner's peak with its excess, and what all rows that there are (``every``) know of the
    optimum, bound and status for each sharing."""
    table = Table("problem", "buffers", *planners, "optimum", "bound", "status")
    for name in sorted({r.problem for r in rows}):
        here = [r for r in rows if r.problem == name]
        for n, kinds in enumerate(dict.fromkeys(r.sharing for r in here)):
            mine = {r.planner: r for r in here if r.sharing == kinds}
            known = known_of(r for r in every if r.problem == name and r.sharing == kinds)
            proven = known.status == "optimal"
            title = (name, f"{here[0].buffers:,}") if n == 0 else ("", "")
            cells = [_peak(mine[p]) if p in mine else "" for p in planners]
            kind = "" if kinds == "none" else f", sharing {kinds}"
            status = f"{known.status or 'no plan'}{kind}"
            optimum = bytes_of(known.peak) if proven else ""
            table.add_row(Text(title[0]), title[1], *cells, optimum, bytes_of(known.lower_bound), status)
    return table


def planner_table(rows: Sequence[Row], planners: Sequence[str]) -> Table:
    """Every planner: proven, best, excess, time, failures."""
    head = (
        "planner",
        "problems",
        "proven",
        "best",
        "mean excess",
        "worst excess",
        "on",
        "median s",
        "solved, s",
        "not",
    )
    table = Table(*head)
    for planner in planners:
        record = record_of(planner, [r for r in rows if r.planner == planner], rows)
        failures = ", ".join(f"{n} {what}" for what, n in sorted(record.failures.items()))
        table.add_row(
            planner,
            str(record.problems),
            str(record.proven),
            str(record.best),
            percent(record.mean_excess) + ("*" if record.over_bound else ""),
            percent(record.worst_excess),
            Text(record.worst_problem if record.worst_excess else ""),
            "" if record.median_seconds is None else f"{record.median_seconds:.4f}",
            "" if record.total_seconds is None else f"{record.total_seconds:.2f}",
            failures,
        )
    return table


def _peak(row: Row) -> str:
    if not row.solved:
        return str(row.status)
    mark = "*" if row.against == "bound" else ""
    more = f" +{row.excess:.1%}{mark}" if row.excess else mark
    return f"{bytes_of(row.peak)}{more}"


def bytes_of(number: int | None) -> str:
    """Bytes with separators; nothing for None."""
    return "" if number is None else f"{number:,}"


def percent(share: float | None) -> str:
    """Per cent with two digits; nothing for None."""
    return "" if share is None else f"{share:.2%}"
