"""What was measured, as text and figures: JSONL rows in, ``RESULTS.md``, README's section and the guard's record out.

    python -m benchmarks.report [--check]

Reads ``benchmarks/results/{plans,exports,runtime}.jsonl``, which `arena bench`, ``benchmarks.corpus`` and
``benchmarks.runtime`` write. The same rows give the same bytes. With ``--check`` nothing is written; the exit code is 1
if a text is not what the rows say.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.tables import (
    GREEDY,
    OURS,
    ByProblem,
    exports_table,
    is_ours,
    known,
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
from planner.bench.row import Row, read_rows
from planner.bench.summary import record_of, with_excess
from planner.bench.tables import bytes_of, percent
from planner.textfiles import FileError, read_text, write_atomically

HERE = Path(__file__).parent
RESULTS = HERE / "results"
README = HERE.parent / "README.md"
BEGIN, END = "<!-- results: written by benchmarks/report.py -->", "<!-- end of results -->"

GUARDED = (
    "basicunet_2d.portable",
    "bigru.portable",
    "convnext_tiny.portable",
    "densenet121.portable",
    "fishnet99.portable",
    "ghostnet.portable",
    "hardnet39ds.portable",
    "hrnet_w18_small_v1.portable",
    "inceptionv3.portable",
    "llama_step.portable",
    "llama_step.portable.moved",
    "lwopenpose2d_mobilenet_cmupan.portable",
    "mlperf_ds_cnn.int8",
    "segformer_b0.portable",
    "shufflenetv2_w1.portable",
    "squeezenet_v1_1.nhwc",
    "swin_tiny.portable",
    "unetplusplus_2d.portable",
    "xdensenet121_2.portable",
    "yolov8n_like.portable",
)
"""What `tests/benchmarks/test_guard.py` solves in every run of the tests."""


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m benchmarks.report", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a text is not up to date")
    args = parser.parse_args()
    try:
        texts = texts_of(rows_of(RESULTS / "plans.jsonl"), *(objects_of(RESULTS / f) for f in FACTS))
        old = read_text(str(README))
        texts[README] = with_section(old, texts.pop(README))
        if args.check:
            stale = [p for p, text in texts.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
            for path in stale:
                print(f"{path} is not what the rows say: python -m benchmarks.report", file=sys.stderr)
            return 1 if stale else 0
        for path, text in texts.items():
            write_atomically(str(path), text)
        for name, data in pictures_of(rows_of(RESULTS / "plans.jsonl"), objects_of(RESULTS / FACTS[0])).items():
            write_atomically(str(RESULTS / name), data)
    except FileError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


FACTS = ("exports.jsonl", "runtime.jsonl")


def rows_of(path: Path) -> list[Row]:
    """The rows of plans, by problem, with their excess; all measured alike, and all planners on all problems.

    Raises
    ------
    FileError
        If their figures do not compare, or some are missing.
    """
    rows = sorted(read_rows(str(path)), key=lambda r: (r.problem, r.planner))
    _check_alike(path, rows)
    pairs = [(r.problem, r.planner) for r in rows]
    if twice := [pair for pair, n in Counter(pairs).items() if n > 1]:
        raise FileError(f"{path}: {twice[0][0]} by {twice[0][1]} occurs twice: there must be one row of each")
    planners, there = sorted({p for _, p in pairs}), set(pairs)
    missing = [(n, p) for n in sorted({n for n, _ in pairs}) for p in planners if (n, p) not in there]
    if missing or not rows:
        what = f"{missing[0][0]} by {missing[0][1]}" if missing else "every row"
        raise FileError(f"{path}: {what} is missing: all planners must be measured on all problems")
    return [r for some in by_problem(rows).values() for r in with_excess(some)]


def _check_alike(path: Path, rows: Sequence[Row]) -> None:
    versions = {(package, v) for r in rows for package, v in r.versions.items()}
    for what, values in (
        ("time limits", {r.time_limit for r in rows}),
        ("workers", {r.workers for r in rows}),
        ("seeds", {r.seed for r in rows}),
        ("numbers of runs", {r.runs for r in rows}),
        ("jobs at a time", {r.jobs for r in rows}),
        ("machines", {json.dumps(r.machine, sort_keys=True) for r in rows}),
        *((f"versions of {p}", {v for q, v in versions if q == p}) for p in sorted({p for p, _ in versions})),
        *((f"problems called {n}", {r.sha256 for r in some}) for n, some in by_problem(rows).items()),
    ):
        if len(values) > 1:
            raise FileError(f"{path}: rows with several {what} do not compare: {', '.join(map(str, sorted(values)))}")


def objects_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file, by model and variant; all of one machine. Raises `FileError`."""
    rows = []
    for n, line in enumerate(read_text(str(path)).splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise FileError(f"{path}:{n}: no JSON: {error.msg}") from None
    if len({json.dumps([r["machine"], r.get("jobs")], sort_keys=True) for r in rows}) != 1:
        raise FileError(f"{path}: there must be rows, and all of one machine and as many jobs at a time")
    return sorted(rows, key=lambda r: (r["model"], r["variant"]))


def by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each problem."""
    out: dict[str, list[Row]] = {}
    for r in rows:
        out.setdefault(r.problem, []).append(r)
    return out


def texts_of(rows: Sequence[Row], exports: Sequence[Any], runs: Sequence[Any]) -> dict[Path, str]:
    """What each file should say; of the README, its section."""
    problems = by_problem(rows)
    return {
        HERE / "RESULTS.md": results(rows, problems, exports, runs),
        HERE / "guard.json": json.dumps(guard_of(problems), indent=1, sort_keys=True) + "\n",
        README: section(rows, problems, exports, runs),
    }


def pictures_of(rows: Sequence[Row], exports: Sequence[Any]) -> dict[str, bytes]:
    """The figures by file name."""
    planners = [p for p in order_of(rows) if "+" not in p]
    return {
        "gap.png": figures.gap_per_problem(by_problem(rows)),
        "proof.png": figures.time_to_proof(rows, planners),
        "arenas.png": figures.arenas(exports),
    }


def order_of(rows: Iterable[Row]) -> list[str]:
    """The planners: ours first, then the others by name."""
    names = {r.planner for r in rows}
    return sorted(names, key=lambda p: (not p.startswith(OURS), not is_ours(p), p))


def guard_of(problems: ByProblem) -> dict[str, dict[str, int]]:
    """Of each guarded problem, the proven optimum for each kind of sharing that has one."""
    record = {}
    for name in GUARDED:
        both = {kinds: known(problems[name], kinds) for kinds in ("none", "all")}
        record[name] = {kinds: k.peak for kinds, k in both.items() if k.status == "optimal" and k.peak is not None}
    return record


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
        "`auto`, `cp-sat`, `native` and `greedy` are ours, `stock-` is ExecuTorch's restated, `executorch-` its own code.",
        "Whole tensors, but for the names with a `+`, which are offered sharing and measured against its optimum.",
        "`at the bound`: the peak is proven least, by the load or by the planner's own search; `least peak`: no planner of",
        "the same sharing has a smaller one; `solved`: the time of all problems for which it has a plan.",
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
        *problems_table(problems),
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
        f"Limits: {limits}, the median time of {first.runs} runs, {first.jobs} problem at a time; Vela, Cadence and the "
        "greedy ones know no time limit, TelaMalloc and Vela use one thread. "
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
    models = len({e["model"] for e in exports})
    return [
        f"- {len(problems)} problems from {len(exports)} exports of {models} networks.",
        f"- ExecuTorch's greedy, whole tensors: above the optimum on {worse} of {greedy.solved}; on average "
        f"{percent(greedy.mean_excess)} (geometric mean), at most {percent(greedy.worst_excess)} "
        f"({greedy.worst_problem}){over}.",
        *(
            _proven(problems, OURS, kinds, words)
            for kinds, words in (("none", "whole tensors"), ("all", "all sharing"))
        ),
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


SHOWN = 13
"""Rows of the README's table."""


def sampled(exports: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The portable exports at even distances when sorted by what they gain, the best and the worst among them."""
    portable = [e for e in exports if e["variant"] == "portable"]
    portable.sort(key=lambda e: (e["arena"]["arena"] / e["stock"]["arena"], e["model"]))
    last = len(portable) - 1
    return [portable[k] for k in sorted({round(last * n / (SHOWN - 1)) for n in range(SHOWN)})]


def section(rows: Sequence[Row], problems: ByProblem, exports: Sequence[Any], runs: Sequence[Any]) -> str:
    """The README's section."""
    lines = []
    for e in exports:
        if e["model"] in NAMED and e["variant"] == "portable":
            a, b = e["stock"], e["arena"]
            share = f"{b['arena'] / a['arena'] - 1:.1%}"
            moved = (
                f"{a['instructions']:,} → {b['instructions']:,}",
                f"{a['copied'] / 1e6:.2f} → {b['copied'] / 1e6:.2f}",
            )
            lines.append((e["model"], bytes_of(a["arena"]), bytes_of(b["arena"]), share, *moved, e["status"]))
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
            "Of the portable exports, sorted by what they gain, the first, the last, and some at even distances between:",
            "",
            *markdown(head, lines),
            "",
            "![excess of ExecuTorch's greedy](benchmarks/results/gap.png)",
        ]
    )


def with_section(text: str, new: str) -> str:
    """The README with its section replaced.

    Raises
    ------
    FileError
        If the marks of the section are not there.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise FileError(f"{README}: the marks {BEGIN!r} and {END!r} must be there, in this order")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
