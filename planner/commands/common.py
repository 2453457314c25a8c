"""What the commands share: exit codes, and kinds of arguments."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from solvers.files.text import FileError

if TYPE_CHECKING:
    from solvers.banks.bank import Bank

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def seconds(text: str) -> float:
    value = float(text)
    if math.isnan(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds: it must be at least 0")
    return value


def weight(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no weight: it must be finite and at least 0")
    return value


def count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 2**62:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 2^62")
    return value


Size = tuple[str, int, int | None]


def bank(text: str) -> Size:
    """``NAME=SIZE``, ``NAME=SIZE@ALIGNMENT``: name, bytes, alignment."""
    found = re.fullmatch(r"([^=]+)=(\d{1,19})([KMG]?)(?:@(\d{1,19}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text} is no bank: it must be NAME=SIZE or NAME=SIZE@ALIGNMENT, in bytes; K, M and G are powers of 1024"
        )
    name, size, unit, alignment = found.groups()
    return name, int(size) << {"": 0, "K": 10, "M": 20, "G": 30}[unit], None if alignment is None else int(alignment)


def banks_given(sizes: Sequence[Size]) -> tuple[Bank, ...]:
    """The banks of the command line, the fastest first, with mem_ids from 1. Raises `FileError`."""
    from solvers.banks.bank import Bank, check_banks
    from solvers.problem.buffers import ProblemError

    try:
        banks = [Bank(name, size, n, alignment) for n, (name, size, alignment) in enumerate(sizes, 1)]
        if banks:
            check_banks(banks)
    except ProblemError as error:
        raise FileError(f"--bank: {error}") from None
    return tuple(banks)


def add_banks(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add ``--bank``, as often as wanted."""
    metavar = "NAME=SIZE[@ALIGNMENT]"
    parser.add_argument("--bank", type=bank, action="append", default=[], metavar=metavar, help=help_text)


def add_workers_and_seed(parser: argparse.ArgumentParser) -> None:
    """Add what says how to search."""
    parser.add_argument("--workers", type=count, default=0, metavar="N", help="threads (default 0: one per core)")
    parser.add_argument("--seed", type=count, default=0, metavar="N", help="random seed (default 0)")


def check_workers_and_seed(args: argparse.Namespace) -> None:
    """Raise `FileError` where they are more than the solvers take."""
    if args.workers > 1000 or args.seed >= 2**31:
        raise FileError("--workers must be at most 1000 and --seed below 2^31")


def same_file(one: str, other: str) -> bool:
    """Are two paths one file that exists?"""
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def check_output(output: str, source: str, suffixes: tuple[str, ...], what: str) -> None:
    """Raise `FileError` unless ``output`` has one of the suffixes (or is ``-``) and is not the file read from."""
    if output != "-" and not output.endswith(suffixes):
        raise FileError(f"{output!r}: {what} is written as {' or '.join(suffixes)}")
    if output != "-" and same_file(output, source):
        raise FileError(f"{output}: this would overwrite what is read")


@contextlib.contextmanager
def needs_executorch() -> Iterator[None]:
    """Raise `FileError` with the install line where torch or executorch is missing.

    What the imports print goes to standard error: standard output is for data.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "executorch"):
            raise
        raise FileError(f"{error.name} is missing: pip install 'arena-planner[executorch]'") from None
