"""The words of the report: RESULTS.md and the README's section, from rows alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.tables import (
    GREEDY,
    OURS,
    ByProblem,
    exports_table,
    is_ours,
    markdown,
    planners_table,
    problems_table,
    row_of,
    runtime_table,
    sharing_table,
    unproven,
    where_others_win,
    where_others_win_in_short,
)
from planner.bench.row import Row
from planner.bench.summary import record_of
from planner.bench.tables import bytes_of, percent


def order_of(rows: Iterable[Row]) -> list[str]:
    """The planners: ours first, then the others by name."""
    names = {r.planner for r in rows}
    return sorted(names, key=lambda p: (not p.startswith(OURS), not is_ours(p), p))


def results(rows: Sequence[Row], problems: ByProblem, exports: Sequence[Any], runs: Sequence[Any]) -> str:
    """The text of RESULTS.md."""
    planners = order_of(rows)
    lines = [
        "# Results",
        "",
        "Written by `python -m benchmarks.report` from the rows in `benchmarks/results`; nothing is typed by hand.",
        *setting(rows, exports),
        "",
        "Excess is `peak / optimum - 1`; where the optimum is not proven, over the bound, and marked *.",
        "Networks marked † were written for this corpus, as no package that installs beside this torch has them.",
        "",
        "## Where others win",
        "",
        *where_others_win(problems, [p for p in planners if not is_ours(p)]),
        "",
        "## In short",
        "",
        *in_short(rows, problems, exports),
        "",
        "## Planners",
        "",
        "`auto`, `cp-sat`, `native`, `greedy` are ours; `stock-` is ExecuTorch's restated, `executorch-` its own code.",
        "Whole tensors, but for the names with a `+`, which are offered sharing and measured against its optimum.",
        "`at the bound`: the peak is proven least, by the load or the planner's own search; `least peak`: no planner",
        "of the same sharing has a smaller one; `solved`: the time of all problems for which it has a plan.",
        "",
        *planners_table(rows, planners),
        "",
        "![time to proof](results/proof.png)",
        "",
        "## Sharing",
        "",
        "Against the arena of whole tensors by the same planner.",
        "",
        *sharing_table(problems),
        "",
        "## Not proven",
        "",
        "Whole tensors:",
        "",
        *(unproven(problems, "none") or ["none."]),
        "",
        "With all sharing:",
        "",
        *(unproven(problems, "all") or ["none."]),
        "",
        "## Problems",
        "",
        "![excess of greedy](results/gap.png)",
        "",
        *problems_table(problems, {p for e in exports if e["source"] == BY_HAND for p in e["problems"]}),
        "",
        "## Exports",
        "",
        "What `arena_planning_pass()` makes of each export, with its defaults. Delegates have their own memory, which",
        "no planner sees: an export that one delegate swallows has no more than its inputs and outputs to place.",
        "",
        "![arenas](results/arenas.png)",
        "",
        *exports_table(exports),
        "",
        "## On the runtime",
        "",
        "Both programs in one process in turn; copying by ETDump; the process's peak is what loading and running a",
        "program once adds. `ours / stock` is the median of the ratios of neighbouring runs.",
        "",
        *runtime_table(runs),
    ]
    return "\n".join(lines) + "\n"


def setting(rows: Sequence[Row], exports: Sequence[Any]) -> list[str]:
    """Machine, versions and limits."""
    machine, versions = rows[0].machine, {k: v for r in rows for k, v in r.versions.items()}
    versions |= {k: v for e in exports for k, v in e["versions"].items()}
    first = rows[0]
    limits = f"{first.time_limit:g} s for each problem and planner, {first.workers or machine['cores']} workers"
    return [
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}.",
        f"Versions: {', '.join(f'{k} {v}' for k, v in sorted(versions.items()))}.",
        f"Limits: {limits}, the median time of {first.runs} runs, {first.jobs} problem at a time; Vela, Cadence and "
        "the greedy ones know no time limit; TelaMalloc and Vela use one thread, SuperMalloc six. "
        f"Exports ran {exports[0]['jobs']} at a time.",
    ]


def in_short(rows: Sequence[Row], problems: ByProblem, exports: Sequence[Any]) -> list[str]:
    """The figures that answer most questions."""
    greedy = record_of(GREEDY, [r for r in rows if r.planner == GREEDY], rows)
    over = f"; {greedy.over_bound} of them over the bound, as no optimum is proven" if greedy.over_bound else ""
    worse = sum((r.excess or 0) > 0 for r in rows if r.planner == GREEDY and r.solved)
    shares = [e["arena"]["arena"] / e["stock"]["arena"] for e in exports if e["stock"]["arena"]]
    times = [e["seconds"]["arena_planning"] / _export_seconds(e) for e in exports]
    stock = [e["seconds"]["stock_planning"] for e in exports]
    ours = [e["seconds"]["arena_planning"] for e in exports]
    models = {e["model"]: e["source"] for e in exports}
    hand = sum(source == BY_HAND for source in models.values())
    return [
        f"- {len(problems)} problems from {len(exports)} exports of {len(models)} networks, {hand} of these by hand.",
        f"- ExecuTorch's greedy, whole tensors: above the optimum on {worse} of {greedy.solved}; on average "
        f"{percent(greedy.mean_excess)} (geometric mean), at most {percent(greedy.worst_excess)} "
        f"({greedy.worst_problem}){over}.",
        *(_proven(problems, kinds, words) for kinds, words in (("none", "whole tensors"), ("all", "all sharing"))),
        f"- With the pass the arena is {statistics.geometric_mean(shares):.1%} of stock's (geometric mean over the "
        f"exports), at least {min(shares):.1%}; smaller on {sum(s < 1 for s in shares)} of {len(shares)}, larger on "
        f"{sum(s > 1 for s in shares)}.",
        f"- Planning by the pass takes {statistics.median(times):.1%} of the time of the export (median), at most "
        f"{max(times):.1%}; {statistics.median(ours):.2f} s (median), where stock's greedy takes "
        f"{statistics.median(stock):.3f} s.",
    ]


def _proven(problems: ByProblem, kinds: str, words: str) -> str:
    """The share at the bound by our planner, without the help of others."""
    name = OURS if kinds == "none" else f"{OURS}+{kinds}"
    mine = [r for rows in problems.values() if (r := row_of(rows, name)) is not None]
    proven = sum(r.status == "optimal" for r in mine)
    seconds = [r.seconds for r in mine if r.seconds is not None]
    took = f"median {1000 * statistics.median(seconds):.1f} ms, at most {max(seconds):.1f} s"
    return f"- `{name}` ({words}): {proven} of {len(problems)} proven optimal ({proven / len(problems):.1%}); {took}."


def _export_seconds(e: Mapping[str, Any]) -> float:
    return float(e["seconds"]["export"] + e["seconds"]["to_executorch"])


BY_HAND = "by hand"
SHOWN = 7
"""Rows of the README's table."""


def sampled(exports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The portable exports at even distances when sorted by what they gain, the best and the worst among them."""
    portable = [e for e in exports if e["variant"] == "portable" and e["source"] != BY_HAND]
    portable.sort(key=lambda e: (e["arena"]["arena"] / e["stock"]["arena"], e["model"]))
    last = len(portable) - 1
    return [portable[k] for k in sorted({round(last * n / (SHOWN - 1)) for n in range(SHOWN)})]


def section(rows: Sequence[Row], problems: ByProblem, exports: Sequence[Any], runs: Sequence[Any]) -> str:
    """The README's section."""
    lines = []
    for e in sampled(exports):
        a, b = e["stock"], e["arena"]
        share = f"{b['arena'] / a['arena'] - 1:.1%}"
        fewer = f"{a['instructions']:,} → {b['instructions']:,}"
        copied = f"{a['copied'] / 1e6:.2f} → {b['copied'] / 1e6:.2f}"
        lines.append((e["model"], bytes_of(a["arena"]), bytes_of(b["arena"]), share, fewer, copied, e["status"]))
    head = ("portable export", "stock arena", "ours", "", "instructions", "MB copied", "status")
    others = where_others_win_in_short(problems, [p for p in order_of(rows) if not is_ours(p)])
    return "\n".join(
        [
            *setting(rows, exports),
            "All figures, and where other planners win, are in [benchmarks/RESULTS.md](benchmarks/RESULTS.md).",
            "",
            f"Where others win: {others}",
            "",
            *in_short(rows, problems, exports),
            "",
            "Of the portable exports, sorted by what they gain, the first, the last, and some at even distances:",
            "",
            *markdown(head, lines),
            "",
            "![excess of ExecuTorch's greedy](benchmarks/results/gap.png)",
        ]
    )
