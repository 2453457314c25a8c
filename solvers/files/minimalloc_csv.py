"""MiniMalloc CSV, read and written.

Columns ``id,lower,upper,size[,alignment][,hint][,gaps][,offset]``; also ``buffer`` or ``buffer_id``, ``start`` or
``begin``; a column called ``end`` is inclusive. A hint is not used; gaps are refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from solvers.files.text import FileError
from solvers.problem.buffers import Buffer, ProblemError
from solvers.problem.problem import Problem

_CSV_NAMES = {"buffer": "id", "buffer_id": "id", "start": "lower", "begin": "lower"}
_CSV_COLUMNS = ("id", "lower", "upper", "end", "size", "alignment", "hint", "gaps", "offset")


def problem_from_csv(text: str, path: str = "problem.csv") -> Problem:
    """Read MiniMalloc CSV; ``path`` is for messages. Raises `FileError`."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        table = [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        raise FileError(f"{path}:{rows.line_num}: not CSV: {error}") from None
    header = _csv_header(table[0][1] if table else [], path)
    buffers: dict[str, Buffer] = {}
    for line, row in table[1:]:
        b = _csv_buffer(header, row, f"{path}:{line}")
        if b.id in buffers:
            raise FileError(f"{path}:{line}: buffer id {b.id!r} occurs twice: ids must be unique")
        buffers[b.id] = b
    try:
        return Problem(buffers.values(), name=Path(path).stem)
    except ProblemError as error:
        raise FileError(f"{path}: {error}") from None


def _csv_header(names: Sequence[str], path: str) -> list[str]:
    """Our names of the columns."""
    if not names:
        raise FileError(f"{path}:1: the file is empty: it must start with a line of column names")
    header = [_CSV_NAMES.get(name.strip(), name.strip()) for name in names]
    for name in header:
        if name not in _CSV_COLUMNS:
            raise FileError(f"{path}:1: column {name!r} is unknown: columns are {', '.join(_CSV_COLUMNS)}")
        if header.count(name) > 1:
            raise FileError(f"{path}:1: column {name!r} occurs twice")
    if ("upper" in header) == ("end" in header):
        raise FileError(f"{path}:1: there must be one column 'upper' (exclusive) or 'end' (inclusive)")
    for name in ("id", "lower", "size"):
        if name not in header:
            raise FileError(f"{path}:1: column {name!r} is missing")
    return header


def _csv_buffer(header: Sequence[str], row: Sequence[str], where: str) -> Buffer:
    if len(row) != len(header):
        raise FileError(f"{where}: {len(row)} values: the header has {len(header)} columns")
    cell = {name: x if name == "id" else x.strip() for name, x in zip(header, row, strict=True)}
    if cell.get("gaps"):
        raise FileError(f"{where}: gaps is {cell['gaps']!r}: buffers with gaps are not supported, it must be empty")

    def number(name: str) -> int:
        if not re.fullmatch(r"[+-]?\d{1,40}", cell[name]):
            raise FileError(f"{where}: {name} is {cell[name]!r}: it must be an integer")
        return int(cell[name])

    end = number("upper") if "upper" in cell else number("end") + 1
    alignment = number("alignment") if cell.get("alignment") else 1
    offset = number("offset") if cell.get("offset") else None
    try:
        return Buffer(cell["id"], number("size"), number("lower"), end, alignment, offset)
    except ProblemError as error:
        raise FileError(f"{where}: {error}") from None


def problem_to_csv(problem: Problem, offsets: Mapping[str, int] | None = None, drop_colocations: bool = False) -> str:
    """The problem as MiniMalloc CSV, with a column of offsets if given or pinned.

    Raises
    ------
    ProblemError
        If it has colocations, which CSV cannot hold, unless ``drop_colocations``; so too for a capacity-less loss of
        nothing else: names and labels are not kept.
    """
    if problem.colocations and not drop_colocations:
        raise ProblemError(
            f"the problem has {len(problem.colocations)} colocations: CSV cannot hold them, write .json or drop them"
        )
    given = offsets or {b.id: b.offset for b in problem.buffers if b.offset is not None}
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    if any("\r" in b.id for b in problem.buffers):
        rows = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    rows.writerow(["id", "lower", "upper", "size", "alignment", *(["offset"] if given else [])])
    for b in problem.buffers:
        at = [given.get(b.id, "")] if given else []
        rows.writerow([b.id, b.start, b.end, b.size, b.alignment, *at])
    return out.getvalue()
