"""`arena demo`: see it work."""

from __future__ import annotations

import argparse

from planner.commands.common import needs_executorch, seconds

NAME = "demo"
HELP = "export, plan, run and compare two programs on the ExecuTorch runtime"
EXAMPLE = """example:
  arena demo --out demo/"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--out", metavar="DIR", help="also write the .pte files there")
    parser.add_argument("--time-limit", type=seconds, default=10.0, metavar="S", help="seconds of search (default 10)")


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    with needs_executorch():
        from planner.executorch.showcase import run_demo
    return run_demo(args.out, args.time_limit)
