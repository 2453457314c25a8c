"""The `arena` command. Data goes to standard output or -o, talk and progress to standard error.

Exit codes: 0 done; 1 infeasible, violated, or capacity exceeded; 2 bad usage or unreadable input.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from planner.commands import bench, demo, plan, replan, show, verify
from planner.commands.common import BAD_INPUT, INTERRUPTED
from solvers.files.text import FileError

COMMANDS = (demo, plan, verify, show, replan, bench)


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
    for command in COMMANDS:
        sub = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP,
            epilog=command.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


class _Version(argparse.Action):
    """Looks for the native core only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from solvers.core import core

        try:
            number = version("arena-planner")
        except PackageNotFoundError:
            number = "(not installed)"
        native = "with the native core" if core is not None else "without the native core: CP-SAT and Python alone"
        print(f"arena {number}, {native}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
