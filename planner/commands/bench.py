"""`arena bench`: problems times planners, to a table and JSONL rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.common import (
    DONE,
    FAILED,
    add_workers_and_seed,
    check_workers_and_seed,
    count,
    seconds,
)
from solvers.files.text import FileError

if TYPE_CHECKING:
    from planner.bench.row import Row
    from planner.bench.row_file import RowFile
    from planner.bench.runner import Campaign
    from solvers.problem.problem import Problem

LONGEST = 200_000
"""Seconds that a planner may take at most."""

NAME = "bench"
HELP = "measure planners on problem files"
EXAMPLE = """example:
  arena bench benchmarks/problems --solvers stock-greedy,auto --time-limit 10
  arena bench model.json --solvers executorch-greedy,supermalloc,auto,auto+all --runs 5 -o rows.jsonl

A planner's name may end in the kinds of sharing that it is offered: +concats, +views, +in-place, or +all; without,
tensors are placed whole. A problem's capacity is not looked at. An excess marked * is over the bound, as no optimum is
proven. What rows.jsonl has already is not measured again, but for what crashed, hung or was missing; several calls may
add to one file at a time, and Ctrl-C keeps what is done. --list names the planners."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=".csv or .json files, or folders of them")
    default = "stock-greedy,auto"
    parser.add_argument("--solvers", default=default, metavar="A,B,...", help=f"planners (default {default})")
    parser.add_argument("--list", action="store_true", help="name the planners and end")
    parser.add_argument("--time-limit", type=seconds, default=10.0, metavar="S", help="seconds each (default 10)")
    parser.add_argument("--runs", type=count, default=1, metavar="K", help="of each; the median time counts")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="problems at a time (default 1)")
    add_workers_and_seed(parser)
    patience = "stop a planner that has not answered after S seconds (default 30 more than thrice the time limit)"
    parser.add_argument("--patience", type=seconds, metavar="S", help=patience)
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl", help="keep the rows there, and go on from what it has")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from planner.bench.contenders import entrant_of
    from planner.bench.row_file import RowFile
    from planner.bench.runner import Campaign
    from solvers.run import Options

    if args.list:
        _print_list()
        return DONE
    check_workers_and_seed(args)
    if not 1 <= args.runs <= 1000 or not 1 <= args.jobs <= 64:
        raise FileError("--runs must be 1 to 1000 and --jobs 1 to 64")
    if not args.time_limit <= LONGEST or not 0 < (LONGEST if args.patience is None else args.patience) <= LONGEST:
        raise FileError(f"--time-limit and --patience must be at most {LONGEST} seconds, and --patience above 0")
    if not args.problems:
        raise FileError("no PROBLEM given")
    names = list(dict.fromkeys(args.solvers.split(",")))
    entrants = [entrant_of(name) for name in names]
    file = None
    if args.output is not None:
        if not args.output.endswith(".jsonl"):
            raise FileError(f"{args.output!r}: rows are written as .jsonl")
        file = RowFile(args.output)
    problems = _problems(args.problems)
    options = Options(args.time_limit, args.workers, args.seed)
    patience = 3 * args.time_limit + 30 if args.patience is None else args.patience
    plan = Campaign(problems, entrants, options, args.runs, args.jobs, patience)
    rows, every = _measure(plan, file, args.quiet)
    _print(rows, names, every)
    return DONE if all(r.status != "wrong" for r in rows) else FAILED


def _measure(plan: Campaign, file: RowFile | None, quiet: bool) -> tuple[list[Row], list[Row]]:
    """The rows that this call asks for, and all that there are of its problems; the file has all that it ever had."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from planner.bench.runner import measure

    asked: list[Row] = []
    every: list[Row] = []
    fresh: list[Row] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    disable = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=disable) as bar:
        task = bar.add_task("", total=len(plan.problems))
        measured = measure(
            plan, file.rows if file else (), lambda line: bar.update(task, description=line), fresh.append
        )
        try:
            for rows in measured:
                asked += rows.asked
                every += rows.every
                _keep(file, fresh)
                bar.advance(task)
        except KeyboardInterrupt:
            _keep(file, fresh)
            raise
    return asked, every


def _keep(file: RowFile | None, fresh: list[Row]) -> None:
    """Move the rows that were measured since the last time to the file, if there is one."""
    new = list(fresh)
    if file is not None and new:
        file.add(new)
    del fresh[: len(new)]


def _problems(paths: Sequence[str]) -> list[Problem]:
    """The problems of files and folders; their names are told apart."""
    from solvers.files.by_name import read_problem
    from solvers.problem.problem import Problem

    files: list[str] = []
    for path in paths:
        try:
            inside = sorted(str(p) for p in Path(path).iterdir()) if Path(path).is_dir() else None
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from None
        found = [p for p in inside or () if p.endswith((".csv", ".json"))]
        if inside is not None and not found:
            raise FileError(f"{path}: no .csv or .json file is in this folder")
        files += [path] if inside is None else found
    problems: dict[str, Problem] = {}
    for path in dict.fromkeys(files):
        problem = read_problem(path)
        name = problem.name or Path(path).stem
        if name in problems:
            raise FileError(f"{path}: another problem is called {name!r} as well: names must be unique")
        problems[name] = Problem(problem.buffers, problem.colocations, problem.capacity, name)
    return list(problems.values())


def _print(rows: Sequence[Row], names: Sequence[str], every: Sequence[Row]) -> None:
    from rich.console import Console

    from planner.bench.tables import planner_table, problem_table

    console = Console(width=None if sys.stdout.isatty() else 100 + 24 * len(names))
    console.print(problem_table(rows, names, every))
    console.print(planner_table(rows, names))
    for row in rows:
        if not row.solved and row.status != "unsupported":
            name = row.problem.replace("\n", "\\n")
            print(f"{name}: {row.planner}: {row.status}: {row.error}", file=sys.stderr)


def _print_list() -> None:
    from rich.console import Console
    from rich.table import Table

    from planner.bench.contenders import CONTENDERS

    table = Table("planner", "what", "sharing", "packages")
    for c in CONTENDERS.values():
        table.add_row(c.name, c.about, "yes" if c.ties else "no", ", ".join(c.packages))
    Console().print(table)
