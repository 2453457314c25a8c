"""Markdown tables of what was measured: each function makes one section of the report from rows alone."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from planner.bench.contenders import CONTENDERS
from planner.bench.row import Row
from planner.bench.summary import Known, geometric_mean, known_of, record_of
from planner.bench.tables import bytes_of, percent

OURS, GREEDY = "auto", "stock-greedy"
"""The planner that is ours, and the one that the export has without it."""

MARK = " †"
"""Of what is written by hand."""

ByProblem = Mapping[str, Sequence[Row]]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; all columns but the first are numbers."""
    rule = ["---", *("---:" for _ in head[1:])]
    lines = ([" ".join(cell.replace("|", "\\|").split()) for cell in cells] for cells in (head, rule, *rows))
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def is_ours(planner: str) -> bool:
    """Is this planner one of this package, with or without sharing?"""
    contender = CONTENDERS.get(planner.partition("+")[0])
    return contender is not None and contender.ties


def known(rows: Sequence[Row], sharing: str) -> Known:
    """What the rows of one problem say under one kind of sharing."""
    return known_of([r for r in rows if r.sharing == sharing])


def row_of(rows: Sequence[Row], planner: str) -> Row | None:
    """The planner's row among those of one problem, if it has a plan."""
    return next((r for r in rows if r.planner == planner and r.solved), None)


def _pairs(problems: ByProblem, peer: str) -> list[tuple[Row, Row]]:
    """Our row and the peer's, of whole tensors, where both have a plan."""
    both = [(row_of(rows, OURS), row_of(rows, peer)) for rows in problems.values()]
    return [(mine, theirs) for mine, theirs in both if mine and theirs and theirs.sharing == mine.sharing]


def _alone(problems: ByProblem, peer: str) -> list[str]:
    """Problems for which the peer has a plan and ours has none."""
    return [name for name, rows in problems.items() if row_of(rows, peer) and not row_of(rows, OURS)]


def where_others_win(problems: ByProblem, planners: Sequence[str]) -> list[str]:
    """Per peer: on which problems its peak is smaller than ours, and on how many it was quicker to as small a one."""
    out = []
    for peer in planners:
        smaller, quicker, ratios = [], 0, []
        if alone := _alone(problems, peer):
            out.append(f"- **{peer}** has a plan where ours has none: {', '.join(alone)}.")
        for mine, theirs in _pairs(problems, peer):
            if theirs.peak < mine.peak:
                smaller.append(f"{mine.problem} ({bytes_of(theirs.peak)} to our {bytes_of(mine.peak)})")
            elif theirs.peak == mine.peak:
                ratios.append(theirs.seconds / mine.seconds)
                quicker += theirs.seconds < mine.seconds
        if smaller:
            out.append(f"- **{peer}** has a smaller peak on {len(smaller)}: {', '.join(smaller)}.")
        if quicker:
            median = statistics.median(ratios)
            out.append(
                f"- **{peer}** was quicker on {quicker} of the {len(ratios)} problems on which its peak is as small as "
                f"ours; over these {len(ratios)}, its time is {median:.2g} of ours (median)."
            )
    return out or ["Nowhere: no other planner has a smaller peak, nor was any quicker to as small a one."]


def where_others_win_in_short(problems: ByProblem, planners: Sequence[str]) -> str:
    """The same in two sentences: on how many problems which peers."""
    smaller, quicker = [], []
    for peer in planners:
        pairs = _pairs(problems, peer)
        below = sum(theirs.peak < mine.peak for mine, theirs in pairs) + len(_alone(problems, peer))
        before = sum(theirs.peak == mine.peak and theirs.seconds < mine.seconds for mine, theirs in pairs)
        smaller += [f"{peer} on {below}"] if below else []
        quicker += [f"{peer} on {before}"] if before else []
    first = f"A smaller peak than ours: {', '.join(smaller) or 'none on any'}."
    return f"{first} As small a peak in less time: {', '.join(quicker) or 'none on any'} (of {len(problems)} problems)."


def planners_table(rows: Sequence[Row], planners: Sequence[str]) -> list[str]:
    """One line per planner."""
    lines = []
    for planner in planners:
        r = record_of(planner, [x for x in rows if x.planner == planner], rows)
        failures = ", ".join(f"{n} {what}" for what, n in sorted(r.failures.items()))
        worst = f"{percent(r.worst_excess)} ({r.worst_problem})" if r.worst_excess else percent(r.worst_excess)
        times = ("", "") if r.median_seconds is None else (f"{1000 * r.median_seconds:.2f}", f"{r.total_seconds:.1f}")
        counts = (str(r.problems), str(r.proven), str(r.best))
        mean = percent(r.mean_excess) + ("*" if r.over_bound else "")
        lines.append((planner, *counts, mean, worst, *times, failures))
    head = (
        "planner",
        "problems",
        "at the bound",
        "least peak",
        "mean excess",
        "worst excess",
        "median ms",
        "solved, s",
        "",
    )
    return markdown(head, lines)


def named(e: Mapping[str, Any]) -> str:
    """Network and variant of an export or run, marked if the network was written by hand."""
    return f"{e['model']}.{e['variant']}" + (MARK if e["source"] == "by hand" else "")


def problems_table(problems: ByProblem, by_hand: Collection[str]) -> list[str]:
    """One line per problem: greedy, the optimum of whole tensors and of shared ones; those by hand are marked."""
    lines = []
    for name, rows in problems.items():
        greedy, whole, shared = row_of(rows, GREEDY), known(rows, "none"), known(rows, "all")
        over = "" if greedy is None else _marked(whole, greedy.peak)
        both = [cell for k in (whole, shared) for cell in (bytes_of(k.peak), _bound(k))]
        saved = f"{1 - shared.peak / greedy.peak:.1%}" if greedy and greedy.peak and shared.peak is not None else ""
        greedy_peak = bytes_of(greedy.peak) if greedy else ""
        title = name + (MARK if name in by_hand else "")
        lines.append((title, f"{rows[0].buffers:,}", greedy_peak, over, *both, saved))
    head = ("problem", "buffers", "greedy", "excess", "whole", "bound", "shared", "bound", "greedy to shared")
    return markdown(head, lines)


def _bound(k: Known) -> str:
    return "proven" if k.status == "optimal" else bytes_of(k.lower_bound)


def _marked(k: Known, peak: int) -> str:
    excess, against = k.excess(peak)
    return percent(excess) + ("*" if against == "bound" else "")


def unproven(problems: ByProblem, sharing: str) -> list[str]:
    """Name, peak and bound of each problem whose optimum is open."""
    out = []
    for name, rows in problems.items():
        k = known(rows, sharing)
        if k.status != "optimal" and k.peak is not None:
            above = f"{k.peak / k.lower_bound - 1:.3%}" if k.lower_bound else ""
            out.append(f"- {name}: peak {bytes_of(k.peak)}, bound {bytes_of(k.lower_bound)} ({above} above it)")
    return out


def sharing_table(problems: ByProblem) -> list[str]:
    """One line per kind of sharing: how far it brings the arena below that of whole tensors, and the copying saved."""
    lines = []
    every = [k for k in dict.fromkeys(r.sharing for rows in problems.values() for r in rows) if k != "none"]
    for kinds in every:
        shares, saved, lower, proven, count = [], 0, 0, 0, 0
        for rows in problems.values():
            mine, whole = row_of(rows, f"{OURS}+{kinds}"), row_of(rows, OURS)
            if mine is None or whole is None or not whole.peak:
                continue
            count += 1
            shares.append(mine.peak / whole.peak - 1)
            saved += mine.saved
            lower += mine.peak < whole.peak
            proven += mine.status == "optimal"
        best = f"{min(shares, default=0):.1%}"
        mean = percent(geometric_mean(shares))
        lines.append((kinds, str(count), str(proven), str(lower), mean, best, f"{saved / 1e6:,.1f}"))
    head = ("sharing", "problems", "proven", "smaller arena", "mean", "most", "MB no longer copied, all")
    return markdown(head, lines)


def exports_table(exports: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per export: what the pass made of it, and how long that took beside the export."""
    lines = []
    for e in exports:
        before, after, seconds = e["stock"], e["arena"], e["seconds"]
        whole = seconds["export"] + seconds["to_executorch"]
        lines.append(
            (
                named(e),
                bytes_of(before["arena"]),
                bytes_of(after["arena"]),
                f"{after['arena'] / before['arena'] - 1:.1%}" if before["arena"] else "",
                str(e["status"]),
                f"{before['instructions']:,} → {after['instructions']:,}",
                f"{before['copied'] / 1e6:.2f} → {after['copied'] / 1e6:.2f}",
                f"{seconds['arena_planning']:.2f}",
                f"{whole:.1f}",
            )
        )
    head = ("export", "stock arena", "ours", "", "status", "instructions", "MB copied", "planning, s", "export, s")
    return markdown(head, lines)


def runtime_table(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per network that was run."""
    lines = []
    for r in runs:
        a, b = r["stock"], r["arena"]
        lines.append(
            (
                named(r),
                f"{bytes_of(a['arena'])} → {bytes_of(b['arena'])}",
                f"{a['copies']} → {b['copies']}",
                f"{a['copy_ms']:.3f} → {b['copy_ms']:.3f}",
                f"{a['ms']:.2f} → {b['ms']:.2f}",
                f"{r['ratio']:.3f}",
                f"{a['peak_bytes'] / 1e6:.1f} → {b['peak_bytes'] / 1e6:.1f}",
                "yes" if r["equal"] else "**no**",
            )
        )
    head = ("network", "arena, bytes", "copies", "copying, ms", "run, ms", "ours / stock", "process peak, MB", "equal")
    return markdown(head, lines)
