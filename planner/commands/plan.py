"""`arena plan`: plan a problem file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from planner.commands.bank_table import print_banks
from planner.commands.common import (
    DONE,
    FAILED,
    add_banks,
    add_workers_and_seed,
    banks_given,
    check_output,
    check_workers_and_seed,
    count,
    seconds,
    weight,
)
from solvers.files.text import FileError

NAME = "plan"
HELP = "plan a problem file"
EXAMPLE = """example:
  arena plan model.json -o plan.json --time-limit 5
  arena plan trace.csv --capacity 1048576 --json
  arena plan model.json --bank sram=256K --bank dram=8M
  cat trace.csv | arena plan -"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("problem", metavar="PROBLEM", help=".csv, .json, or - for standard input")
    parser.add_argument("-o", "--output", metavar="PLAN.json", help="write it there (.json, or .csv with offsets)")
    parser.add_argument("--solver", default="auto", metavar="NAME", help="auto (default), cp-sat, native or greedy")
    parser.add_argument("--time-limit", type=seconds, default=10.0, metavar="S", help="seconds (default 10)")
    add_workers_and_seed(parser)
    parser.add_argument("--capacity", type=count, metavar="BYTES", help="no larger arena will do")
    add_banks(parser, "a memory to place buffers in, the fastest first; sizes in bytes, or with K, M, G")
    parser.add_argument("--reproducible", action="store_true", help="work decides, not the clock: one plan anywhere")
    parser.add_argument("--optional", action="store_true", help="read all colocations as optional")
    objectives = ("peak", "copies", "weighted")
    parser.add_argument("--objective", default="peak", choices=objectives, help="what comes first (default peak)")
    parser.add_argument("--copy-weight", type=weight, default=1.0, metavar="W", help="of a copied byte, for weighted")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from planner.progress import console_progress
    from solvers.files import by_name as files
    from solvers.problem.buffers import ProblemError
    from solvers.problem.problem import Problem
    from solvers.run import Objective, Options
    from solvers.search import SOLVERS, solve

    if args.solver not in SOLVERS:
        raise FileError(f"--solver is {args.solver!r}: it must be one of {', '.join(SOLVERS)}")
    if args.output is not None:
        check_output(args.output, args.problem, (".json", ".csv"), "a plan")
    check_workers_and_seed(args)
    problem = files.read_problem(args.problem, args.optional)
    if args.capacity is not None:
        try:
            problem = Problem(problem.buffers, problem.colocations, args.capacity, problem.name)
        except ProblemError as error:
            raise FileError(f"--capacity: {error}") from None
    banks = banks_given(args.bank)
    if banks:
        _check_with_banks(args, problem)
    objective = Objective(args.objective)
    stop = threading.Event()
    options = Options(
        args.time_limit,
        args.workers,
        args.seed,
        objective=objective,
        copy_weight=args.copy_weight,
        reproducible=args.reproducible,
        stop=stop,
    )
    result: Any
    with _interrupt_sets(stop), console_progress(args.quiet) as report:
        if banks:
            result = _solve_banks(problem, banks, args.solver, options)
        else:
            result = solve(problem, args.solver, dataclasses.replace(options, progress=report))
    if stop.is_set():
        print("arena: interrupted: this is the best plan so far", file=sys.stderr)
    if result.solution is not None and args.output:
        files.write_plan(problem, result, args.output, _parameters(args))
    (print_banks if banks else _print_result)(problem, result, args)
    return DONE if result.solution is not None else FAILED


def _parameters(args: argparse.Namespace) -> dict[str, Any]:
    """What a plan file says of how it was made."""
    return {
        "solver": args.solver,
        "time_limit": args.time_limit if math.isfinite(args.time_limit) else None,
        "workers": args.workers,
        "seed": args.seed,
        "objective": args.objective,
        "copy_weight": args.copy_weight,
        "reproducible": args.reproducible,
    }


def _check_with_banks(args: argparse.Namespace, problem: Any) -> None:
    """Raise `FileError` where something does not go with --bank."""
    if problem.capacity is not None:
        raise FileError(f"--bank: the capacity of {problem.capacity} bytes does not go with it: each bank has its own")
    if args.objective != "peak":
        raise FileError(f"--bank: --objective {args.objective} does not go with it: as much as can be is in fast banks")
    if args.output is not None and args.output.endswith(".csv"):
        raise FileError(f"{args.output!r}: a plan with banks is written as .json")


def _solve_banks(problem: Any, banks: Any, solver: str, options: Any) -> Any:
    from solvers.banks.solve import solve_banks
    from solvers.problem.buffers import ProblemError

    try:
        return solve_banks(problem, banks, solver=solver, options=options)
    except ProblemError as error:
        raise FileError(f"--bank: {error}") from None


@contextlib.contextmanager
def _interrupt_sets(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C sets ``stop``; the second is an interrupt as ever."""

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print_result(problem: Any, result: Any, args: argparse.Namespace) -> None:
    offsets = dict(result.solution.offsets) if result.solution else None
    if args.json:
        row = {
            "status": str(result.status),
            "peak": result.peak,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "solver": result.solver,
            "wall_time": result.wall_time,
            "proof": result.proof,
            "certificate": dataclasses.asdict(result.certificate) if result.certificate else None,
            "trace": [dataclasses.asdict(line) for line in result.trace],
            "struck": result.struck,
            "offsets": offsets,
        }
        print(json.dumps(row))
    elif args.output != "-" and offsets is not None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table("problem", "buffers", "status", "peak", "lower bound", "gap", "solver", "seconds")
        table.add_row(
            Text(problem.name or args.problem),
            str(len(problem.buffers)),
            str(result.status),
            str(result.peak),
            str(result.lower_bound),
            f"{result.gap:.2%}",
            result.solver,
            f"{result.wall_time:.2f}",
        )
        Console(file=sys.stdout).print(table)
        print(f"lower bound by {_proof(result)}", file=sys.stderr)
    if offsets is None:
        print(f"arena: {_why_no_plan(problem, result)}", file=sys.stderr)


def _proof(result: Any) -> str:
    if result.certificate is None:
        return str(result.proof)
    names = [f"{name!r} {size}" for name, size in result.certificate.parts[:3]]
    more = f", {len(result.certificate.parts) - 3} more" if len(result.certificate.parts) > 3 else ""
    at = "one buffer's end" if result.certificate.step is None else f"the load of step {result.certificate.step}"
    return f"{at}: {' + '.join(names)}{more}"


def _why_no_plan(problem: Any, result: Any) -> str:
    if result.peak is None:
        return f"{result.status}: pinned buffers overlap while both live"
    required = result.lower_bound if result.status == "infeasible" else result.peak
    known = "at least" if result.status == "infeasible" and result.lower_bound < result.peak else "the best plan needs"
    return (
        f"{result.status}: capacity exceeded: required {required} bytes ({known}), available {problem.capacity}, "
        f"excess {required - problem.capacity}"
    )
