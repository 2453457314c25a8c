"""The `arena` command. Data goes to standard output or -o, talk and progress to standard error.

Exit codes: 0 done; 1 infeasible, violated, or capacity exceeded; 2 bad usage or unreadable input.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import Any

from planner.textfiles import FileError

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

PLAN_EXAMPLE = """example:
  arena plan model.json -o plan.json --time-limit 5
  arena plan trace.csv --capacity 1048576 --json
  cat trace.csv | arena plan -"""

VERIFY_EXAMPLE = """example:
  arena verify model.json plan.json"""

DEMO_EXAMPLE = """example:
  arena demo --out demo/"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    args = _parser().parse_args(argv)
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name need not be printable
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except FileError as error:
        print(f"arena: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("arena: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # a reader that went away, a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"arena: standard output: cannot be written: {error.strerror}", file=sys.stderr)
        return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arena", description="Plan memory arenas to the proven optimum.")
    parser.add_argument("--version", action=_Version, help="say the version, and whether the native core is there")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Any, help_text: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=help_text,
            description=help_text,
            epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    demo = command("demo", _demo, "export, plan, run and compare two programs on the ExecuTorch runtime", DEMO_EXAMPLE)
    demo.add_argument("--out", metavar="DIR", help="also write the .pte files there")
    demo.add_argument("--time-limit", type=_seconds, default=10.0, metavar="S", help="seconds of search (default 10)")

    plan = command("plan", _plan, "plan a problem file", PLAN_EXAMPLE)
    plan.add_argument("problem", metavar="PROBLEM", help=".csv, .json, or - for standard input")
    plan.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan there (.json, or .csv with offsets)")
    plan.add_argument("--solver", default="auto", metavar="NAME", help="auto, cp-sat or greedy (default auto)")
    plan.add_argument("--time-limit", type=_seconds, default=10.0, metavar="S", help="seconds (default 10)")
    plan.add_argument("--workers", type=_count, default=0, metavar="N", help="threads (default 0: one per core)")
    plan.add_argument("--seed", type=_count, default=0, metavar="N", help="random seed (default 0)")
    plan.add_argument("--capacity", type=_count, metavar="BYTES", help="no larger arena will do")
    plan.add_argument("--reproducible", action="store_true", help="work decides, not the clock: the same plan anywhere")
    plan.add_argument("--optional", action="store_true", help="read all colocations as optional")
    objectives = ("peak", "copies", "weighted")
    plan.add_argument("--objective", default="peak", choices=objectives, help="what comes first (default peak)")
    plan.add_argument("--copy-weight", type=_weight, default=1.0, metavar="W", help="of a copied byte, for weighted")
    plan.add_argument("--json", action="store_true", help="print one JSON object instead of a table")

    check = command("verify", _verify, "check a plan against its problem", VERIFY_EXAMPLE)
    check.add_argument("problem", metavar="PROBLEM")
    check.add_argument("plan", metavar="PLAN")
    check.add_argument("--optional", action="store_true", help="read all colocations as optional")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if math.isnan(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds: it must be at least 0")
    return value


def _weight(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no weight: it must be finite and at least 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 2**62:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 2^62")
    return value


class _Version(argparse.Action):
    """Looks for the native core only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from solvers.native import core

        try:
            number = version("arena-planner")
        except PackageNotFoundError:
            number = "(not installed)"
        native = "with the native core" if core is not None else "without the native core: CP-SAT and Python alone"
        print(f"arena {number}, {native}")
        parser.exit()


def _demo(args: argparse.Namespace) -> int:
    try:
        from planner.executorch.demo import run_demo
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "executorch"):
            raise
        print(f"arena: {error.name} is missing: pip install 'arena-planner[executorch]'", file=sys.stderr)
        return BAD_INPUT
    return run_demo(args.out, args.time_limit)


def _plan(args: argparse.Namespace) -> int:
    from planner import io as files
    from solvers.buffers import ProblemError
    from solvers.problem import Problem
    from solvers.run import Objective, Options
    from solvers.search import SOLVERS, solve

    if args.solver not in SOLVERS:
        raise FileError(f"--solver is {args.solver!r}: it must be one of {', '.join(SOLVERS)}")
    if args.output is not None:
        _check_output(args.output, args.problem)
    if args.workers > 1000 or args.seed >= 2**31:
        raise FileError("--workers must be at most 1000 and --seed below 2^31")
    problem = files.read_problem(args.problem, args.optional)
    if args.capacity is not None:
        try:
            problem = Problem(problem.buffers, problem.colocations, args.capacity, problem.name)
        except ProblemError as error:
            raise FileError(f"--capacity: {error}") from None
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
    with _interrupt_sets(stop):
        result = solve(problem, args.solver, options)
    if stop.is_set():
        print("arena: interrupted: this is the best plan so far", file=sys.stderr)
    if result.solution is not None and args.output:
        if args.output.endswith(".csv"):
            text = files.problem_to_csv(problem, result.solution.offsets, drop_colocations=True)
        else:
            parameters = {
                "solver": args.solver,
                "time_limit": args.time_limit if math.isfinite(args.time_limit) else None,
                "workers": args.workers,
                "seed": args.seed,
                "objective": args.objective,
                "copy_weight": args.copy_weight,
                "reproducible": args.reproducible,
            }
            text = files.plan_to_json(files.plan_file(problem, result, parameters))
        files.write_atomically(args.output, text)
    _print_result(problem, result, args)
    return DONE if result.solution is not None else FAILED


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


def _check_output(output: str, problem: str) -> None:
    if not output.endswith((".json", ".csv")) and output != "-":
        raise FileError(f"{output!r}: a plan is written as .json or .csv")
    if output != "-" and os.path.exists(output) and os.path.exists(problem) and os.path.samefile(output, problem):
        raise FileError(f"{output}: the plan would overwrite the problem")


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


def _verify(args: argparse.Namespace) -> int:
    from planner import io as files
    from solvers.verify import VerificationError, verify

    problem = files.read_problem(args.problem, args.optional)
    plan = files.read_plan(args.plan)
    solution = files.solution_of(plan, problem, args.plan)
    try:
        peak = verify(problem, solution)
        stated = sum(a["peak"] for a in plan.arenas)
        if stated != peak:
            raise VerificationError([f"the plan states a peak of {stated} bytes, its offsets reach {peak}"])
    except VerificationError as error:
        for violation in error.violations:
            print(f"violated: {violation}", file=sys.stderr)
        return FAILED
    print(f"valid: {len(problem.buffers)} buffers, peak {peak} bytes")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
