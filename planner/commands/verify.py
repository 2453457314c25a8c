"""`arena verify`: check a plan against its problem."""

from __future__ import annotations

import argparse
import sys

from planner.commands.common import DONE, FAILED

NAME = "verify"
HELP = "check a plan against its problem"
EXAMPLE = """example:
  arena verify model.json plan.json"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("problem", metavar="PROBLEM")
    parser.add_argument("plan", metavar="PLAN")
    parser.add_argument("--optional", action="store_true", help="read all colocations as optional")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
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
