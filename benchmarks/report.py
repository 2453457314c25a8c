"""What was measured, as text and figures: JSONL rows in, ``RESULTS.md``, README's section and the guard's record out.

    python -m benchmarks.report [--check]

Reads ``benchmarks/results/{plans,exports,runtime}.jsonl``, which `arena bench`, ``benchmarks.corpus`` and
``benchmarks.runtime`` write. The same rows give the same bytes. With ``--check`` nothing is written; the exit code is 1
if a text is not what the rows say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.tables import ByProblem, known
from benchmarks.words import order_of, results, section
from planner.bench.row import Row, read_rows
from planner.bench.summary import with_excess
from solvers.files.text import FileError, read_text, write_atomically

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
    "hrnet_w18_small_v1.portable",
    "inceptionv3.portable",
    "llama_step.portable",
    "llama_step.portable.moved",
    "lwopenpose2d_mobilenet_cmupan.portable",
    "mlperf_ds_cnn.int8",
    "peleenet.portable",
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
        rows, exports, runs = rows_of(RESULTS / "plans.jsonl"), *(objects_of(RESULTS / f) for f in FACTS)
        texts = texts_of(rows, exports, runs)
        old = read_text(str(README))
        texts[README] = with_section(old, texts.pop(README))
        if args.check:
            stale = [p for p, text in texts.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
            for path in stale:
                print(f"{path} is not what the rows say: python -m benchmarks.report", file=sys.stderr)
            return 1 if stale else 0
        for path, text in texts.items():
            write_atomically(str(path), text)
        for name, data in pictures_of(rows, exports).items():
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


def guard_of(problems: ByProblem) -> dict[str, dict[str, int]]:
    """Of each guarded problem, the proven optimum for each kind of sharing that has one."""
    record = {}
    for name in GUARDED:
        both = {kinds: known(problems[name], kinds) for kinds in ("none", "all")}
        record[name] = {kinds: k.peak for kinds, k in both.items() if k.status == "optimal" and k.peak is not None}
    return record


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
