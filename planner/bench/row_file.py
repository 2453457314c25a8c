"""Rows in one file, to which several processes may add at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.bench.row import Row, read_rows, rows_to_jsonl
from planner.bench.summary import with_excess
from solvers.files.text import write_atomically

try:
    import fcntl
except ImportError:  # a system without it has no lock: one process at a time
    fcntl = None  # type: ignore[assignment]


class RowFile:
    """A JSONL file of rows; it is made if it is not there.

    Parameters
    ----------
    path : str

    Raises
    ------
    FileError
        If the file cannot be read or written, or has something else in it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows = self._read()
        self.add([])  # what cannot be written is known before hours of work

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows to what the file has by now: they take the place of those that were asked the same.

        The excess of all rows of their problems is told anew.
        """
        new = list(rows)
        with _alone_in(Path(self.path).absolute().parent):
            every = {r.asked: r for r in self._read()} | {r.asked: r for r in new}
            for problem in {(r.problem, r.sha256) for r in new}:
                some = [r for r in every.values() if (r.problem, r.sha256) == problem]
                every.update((r.asked, r) for r in with_excess(some))
            self.rows = list(every.values())
            write_atomically(self.path, rows_to_jsonl(self.rows))

    def _read(self) -> list[Row]:
        return read_rows(self.path) if Path(self.path).exists() else []


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """No other process is here at the same time for the same folder."""
    if fcntl is None or not folder.is_dir():
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
