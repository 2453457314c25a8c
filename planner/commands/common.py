"""What the commands share: exit codes, and kinds of arguments."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Iterator

from planner.textfiles import FileError

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


def check_output(output: str, source: str, suffixes: tuple[str, ...], what: str) -> None:
    """Raise `FileError` unless ``output`` has one of the suffixes (or is ``-``) and is not the file read from."""
    if output != "-" and not output.endswith(suffixes):
        raise FileError(f"{output!r}: {what} is written as {' or '.join(suffixes)}")
    if output != "-" and os.path.exists(output) and os.path.exists(source) and os.path.samefile(output, source):
        raise FileError(f"{output}: this would overwrite what is read")


@contextlib.contextmanager
def needs_executorch() -> Iterator[None]:
    """Raise `FileError` with the install line where torch or executorch is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "executorch"):
            raise
        raise FileError(f"{error.name} is missing: pip install 'arena-planner[executorch]'") from None
