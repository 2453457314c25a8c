"""`arena replan`: give a .pte the optimal plan."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from planner.commands.common import (
    DONE,
    FAILED,
    add_workers_and_seed,
    check_workers_and_seed,
    count,
    same_file,
    seconds,
)
from solvers.files.text import FileError

NAME = "replan"
HELP = "write an equivalent program with the optimal plan, from a .pte alone"
EXAMPLE = """example:
  arena replan model.pte -o smaller.pte
  arena replan model.pte --in-place-file --no-in-place"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", metavar="MODEL.pte")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--output", metavar="OUT.pte", help="write the new program there")
    where.add_argument("--in-place-file", action="store_true", help="overwrite MODEL.pte")
    parser.add_argument("--no-elide", action="store_true", help="leave concats and views as they are")
    parser.add_argument("--no-in-place", action="store_true", help="write no result onto an operand")
    parser.add_argument(
        "--min-part-alignment",
        type=count,
        default=1,
        metavar="BYTES",
        help="tensors inside others lie at multiples of it (default 1; 16 for targets whose kernels want it)",
    )
    parser.add_argument("--time-limit", type=seconds, default=10.0, metavar="S", help="seconds a method (default 10)")
    add_workers_and_seed(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    output = args.model if args.in_place_file else args.output
    if not output.endswith(".pte"):
        raise FileError(f"{output!r}: a program is written as .pte")
    if not args.in_place_file and same_file(output, args.model):
        raise FileError(f"{output}: this would overwrite what is read; --in-place-file allows it")
    check_workers_and_seed(args)
    if args.min_part_alignment < 1:
        raise FileError(f"--min-part-alignment is {args.min_part_alignment}: it must be at least 1")
    from planner.api import PlanningError, Request
    from planner.program.share_rules import Share
    from planner.program.sharing import Policy
    from planner.progress import console_progress
    from planner.pte.program_file import read_pte
    from planner.pte.replanning import replan, write_pte
    from solvers.run import Options

    wanted = {Share.CONCAT: not args.no_elide, Share.VIEW: not args.no_elide, Share.IN_PLACE: not args.no_in_place}
    policy = Policy(frozenset(s for s, on in wanted.items() if on), min_part_alignment=args.min_part_alignment)
    file = read_pte(args.model)
    with console_progress(args.quiet) as report:
        options = Options(args.time_limit, args.workers, args.seed, report, reproducible=True)
        made, reports = replan(file, Request(policy, options=options))
    try:
        write_pte(made, output)
    except PlanningError as error:
        print(f"arena: {error}", file=sys.stderr)
        return FAILED
    _print(reports, args.json)
    return DONE


def _print(reports: list[Any], as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "method": r.name,
                "before": dataclasses.asdict(r.before),
                "after": dataclasses.asdict(r.after),
                "status": str(r.plan.status) if r.plan else None,
                "kept": r.kept,
                "notes": r.notes,
            }
            for r in reports
        ]
        print(json.dumps({"methods": rows}))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("method", "", "arena bytes", "instructions", "bytes copied", "status")
    for r in reports:
        for which, facts, said in (("before", r.before, ""), ("after", r.after, _status(r))):
            name = Text(r.name) if which == "before" else ""
            arenas = " + ".join(f"{n:,}" for n in facts.arenas[1:]) or "0"
            copied = "" if r.kept and r.plan is None else f"{facts.copied:,}"
            table.add_row(name, which, arenas, str(facts.instructions), copied, said)
    Console(file=sys.stdout).print(table)
    for r in reports:
        for note in ([f"left as it is: {r.kept}"] if r.kept else []) + list(r.notes):
            print(f"method {r.name!r}: {note}", file=sys.stderr)


def _status(report: Any) -> str:
    return str(report.plan.status) if report.plan else "left as it is"
