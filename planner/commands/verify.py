"""`arena verify`: check a plan against its problem."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from planner.commands.common import DONE, FAILED, add_banks, banks_given
from solvers.files.text import FileError

NAME = "verify"
HELP = "check a plan against its problem"
EXAMPLE = """example:
  arena verify model.json plan.json"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("problem", metavar="PROBLEM")
    parser.add_argument("plan", metavar="PLAN")
    add_banks(
        parser, "judge a plan with banks by these, in the plan's order, and not by the sizes that it states itself"
    )
    parser.add_argument("--optional", action="store_true", help="read all colocations as optional")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from solvers.banks.checks import verify_banks
    from solvers.files import by_name as files
    from solvers.verifier import VerificationError, verify

    problem = files.read_problem(args.problem, args.optional)
    plan = files.read_plan(args.plan)
    solution = files.solution_of(plan, problem, args.plan)
    banks = files.banks_of(plan, args.plan)
    if args.bank and len(args.bank) != len(banks):
        raise FileError(f"--bank is given {len(args.bank)} times: the plan has {len(banks)} banks")
    banks = banks_given(args.bank) or banks
    try:
        peaks = verify_banks(problem, banks, plan.arena_of, solution) if banks else (verify(problem, solution),)
        stated = tuple(a["peak"] for a in plan.arenas)
        if stated != peaks:
            raise VerificationError(
                [f"the plan states a peak of {_sizes(stated)} bytes, its offsets reach {_sizes(peaks)}"]
            )
    except VerificationError as error:
        for violation in error.violations:
            print(f"violated: {violation}", file=sys.stderr)
        return FAILED
    print(f"valid: {len(problem.buffers)} buffers, peak {_sizes(peaks)} bytes")
    for n, b in enumerate(banks):
        buffers = sum(k == n for k in plan.arena_of.values())
        print(f"bank {b.name}: {buffers} buffers, peak {peaks[n]} of {b.size} bytes")
    return DONE


def _sizes(peaks: Sequence[int]) -> str:
    return " and ".join(map(str, peaks))
