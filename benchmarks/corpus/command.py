"""Export the corpus and write its planning problems, one JSON file each.

    python -m benchmarks.corpus [NAME[.VARIANT] ...] [--jobs N] [--out FOLDER] [--rows FILE.jsonl] [--again]

Problems go to ``benchmarks/problems``, a row of facts of each export to ``benchmarks/results/exports.jsonl``. What has
a row already is not exported again without ``--again``. An export that fails is named at the end, with the reason, and
is in no file.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.progress import Progress as Bar

from benchmarks.corpus import by_hand, executorch_models, monai_models, pytorchcv_models, transformers_models
from benchmarks.corpus.entry import Entry, Variant
from solvers.files.by_name import problem_to_json, write_atomically

HERE = Path(__file__).parents[1]
SOURCES = (pytorchcv_models, transformers_models, monai_models, executorch_models, by_hand)
BATCH = 20
"""Exports of a process."""

ENTRIES: dict[str, Entry] = {e.name: e for module in SOURCES for e in module.ENTRIES}


def main() -> int:
    """Run the command; 1 if an export failed."""
    parser = argparse.ArgumentParser("python -m benchmarks.corpus", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME[.VARIANT]", help="default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="exports at a time")
    parser.add_argument("--out", type=Path, default=HERE / "problems", metavar="FOLDER")
    parser.add_argument("--rows", type=Path, default=HERE / "results" / "exports.jsonl", metavar="FILE")
    parser.add_argument("--again", action="store_true", help="also what has a row already")
    args = parser.parse_args()
    rows = facts_by_name(args.rows)
    tasks = [t for t in _asked(args.names, parser) if args.again or ".".join(t) not in rows]
    failed: dict[str, str] = {}
    with Bar(disable=not sys.stderr.isatty()) as bar:
        done = bar.add_task("exports", total=len(tasks))
        for name, outcome in _exports(tasks, args.jobs):
            if isinstance(outcome, BaseException):
                failed[name] = " ".join([f"{type(outcome).__name__}:", *str(outcome).splitlines()[:1]])
            else:
                problems, rows[name] = outcome
                for file, text in problems.items():
                    write_atomically(str(args.out / file), text)
                write_atomically(str(args.rows), "".join(json.dumps(rows[k]) + "\n" for k in sorted(rows)))
            print(name, failed.get(name, "done"), file=sys.stderr, flush=True)
            bar.advance(done)
    for name, why in sorted(failed.items()):
        print(f"failed: {name}: {why}", file=sys.stderr)
    return 1 if failed else 0


def _exports(tasks: list[tuple[str, str]], jobs: int) -> Iterator[tuple[str, Any]]:
    """Name and outcome (or exception) of each export; in fresh processes now and then, as exports leave much behind."""
    context = multiprocessing.get_context("spawn")
    for first in range(0, len(tasks), BATCH * jobs):
        with ProcessPoolExecutor(jobs, context) as pool:
            futures = {
                pool.submit(_export, *task, jobs): ".".join(task) for task in tasks[first : first + BATCH * jobs]
            }
            for future in as_completed(futures):
                yield futures[future], future.exception() or future.result()


def _asked(names: list[str], parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    every = [(e.name, str(v)) for e in ENTRIES.values() for v in e.variants]
    known = {e for e, _ in every} | {".".join(t) for t in every}
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is no network of the corpus, nor one of its variants ({', '.join(ENTRIES)})")
    return [t for t in every if not names or t[0] in names or ".".join(t) in names]


def facts_by_name(path: Path) -> dict[str, Any]:
    """The rows of a JSONL file by network and variant; none if there is no file, but then its folder."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {f"{row['model']}.{row['variant']}": row for row in rows}


def _export(name: str, variant: str, jobs: int) -> tuple[dict[str, str], dict[str, Any]]:
    """In a process of its own: the problem files by name, and the row."""
    logging.disable(logging.WARNING)
    from benchmarks.corpus.export import export
    from planner.bench.runner import machine

    made = export(ENTRIES[name], Variant(variant))
    packages = ("torch", "executorch", "arena-planner")
    source = ENTRIES[name].source
    if source not in ("by hand", "executorch.examples.models"):
        packages += (source,)
    made.row["versions"] = {p: version(p) for p in packages}
    made.row |= {"jobs": jobs, "machine": machine()}
    return {f"{p.name}.json": problem_to_json(p) for p in made.problems}, made.row
