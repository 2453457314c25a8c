"""One row: one planner on one problem. Rows are kept as JSONL, one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, get_type_hints

from solvers.files.text import FileError, read_text

FORMAT, VERSION = "arena-bench", 1


class RowStatus(StrEnum):
    """How a planner did: the first two have a plan that the verifier accepts."""

    OPTIMAL = "optimal"
    """Its peak is the bound."""
    FEASIBLE = "feasible"
    WRONG = "wrong"
    """The verifier refuses its plan, or another planner's plan refutes its bound."""
    INFEASIBLE = "infeasible"
    """No plan exists: pinned buffers overlap."""
    UNSUPPORTED = "unsupported"
    """It does not plan problems of this kind."""
    MISSING = "missing"
    """Its package is not installed."""
    CRASHED = "crashed"
    """It raised, or its process died."""
    OVERRUN = "overrun"
    """It did not answer long after the time limit."""


@dataclass(frozen=True)
class Row:
    """One planner on one problem.

    Attributes
    ----------
    problem, sha256 : str
        Name and hash (`solvers.files.json_format.problem_hash`).
    buffers : int
    planner, sharing : str
        As asked for, and the kinds of sharing offered: ``none``, ``all`` or the kinds.
    time_limit : float
        Seconds.
    workers, seed, runs : int
    jobs : int
        Problems solved at a time: times of rows with more than one are of a busy machine.
    status : RowStatus
    peak : int or None
        Bytes, as the verifier counts them; of the first run.
    lower_bound : int or None
        Bytes: the load's, or the planner's own proof if that is higher.
    gap : float or None
        ``(peak - lower_bound) / peak``.
    excess : float or None
        ``peak / optimum - 1``, the optimum being the smallest proven peak among the rows of the problem with the same
        sharing; ``peak / bound - 1`` if none is proven.
    against : str
        What the excess is against: ``optimum`` or ``bound``.
    saved : int
        Bytes of copying that its active optional colocations avoid.
    seconds : float or None
        Median of ``times``.
    times : tuple of float
        Seconds of every run.
    engine : str
    struck : bool
        Ours: did the time limit end the search? Others do not say.
    error : str
        Why there is no plan.
    versions, machine : dict of str to str
    """

    problem: str
    sha256: str
    buffers: int
    planner: str
    sharing: str
    time_limit: float
    workers: int
    seed: int
    runs: int
    jobs: int
    status: RowStatus
    peak: int | None = None
    lower_bound: int | None = None
    gap: float | None = None
    excess: float | None = None
    against: str = ""
    saved: int = 0
    seconds: float | None = None
    times: tuple[float, ...] = ()
    engine: str = ""
    struck: bool = False
    error: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)

    @property
    def solved(self) -> bool:
        """Is there a plan that the verifier accepts?"""
        return self.status in (RowStatus.OPTIMAL, RowStatus.FEASIBLE)

    @property
    def asked(self) -> tuple[object, ...]:
        """What was asked, where and of which versions: rows that agree in it need not be measured twice."""
        what = (self.problem, self.sha256, self.planner, self.time_limit, self.workers, self.seed, self.runs, self.jobs)
        return (*what, *sorted(self.versions.items()), *sorted(self.machine.items()))

    @property
    def lasting(self) -> bool:
        """Would another run say the same? What is missing can be installed, what crashed or hung may do better."""
        return self.status not in (RowStatus.MISSING, RowStatus.CRASHED, RowStatus.OVERRUN)


def rows_to_jsonl(rows: Iterable[Row]) -> str:
    """The rows as JSON objects, one per line."""
    return "".join(json.dumps({"format": FORMAT, "version": VERSION, **asdict(r)}) + "\n" for r in rows)


def read_rows(path: str) -> list[Row]:
    """Read rows.

    Raises
    ------
    FileError
        If the file cannot be read, or a line is no row; with the line's number.
    """
    lines = read_text(path).splitlines()
    return [_row(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _row(line: str, where: str) -> Row:
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        raise FileError(f"{where}: no JSON: {error.msg}") from None
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise FileError(f'{where}: no row of a benchmark: it must be an object with "format": "{FORMAT}"')
    if (version := data.pop("version", None)) != VERSION:
        raise FileError(f"{where}: version is {version!r}: it must be {VERSION}")
    names = {f.name for f in fields(Row)}
    needed = {f.name for f in fields(Row) if f.default is MISSING and f.default_factory is MISSING}
    if missing := sorted(needed - data.keys()):
        raise FileError(f"{where}: {missing[0]!r} is missing")
    if unknown := sorted(data.keys() - names):
        raise FileError(f"{where}: {unknown[0]!r} is no field of a row")
    for name, value in data.items():
        if not isinstance(value, _JSON_TYPES[name]) or (isinstance(value, bool) and bool not in _JSON_TYPES[name]):
            raise FileError(f"{where}: {name} is {value!r}: it must be {_HINTS[name]}")
    try:
        return Row(**data | {"status": RowStatus(data["status"]), "times": tuple(data.get("times", ()))})
    except ValueError:
        raise FileError(f"{where}: status is {data['status']!r}: it must be one of {', '.join(RowStatus)}") from None


def _json_types() -> dict[str, tuple[type, ...]]:
    kinds: dict[Any, tuple[type, ...]] = {
        str: (str,),
        int: (int,),
        bool: (bool,),
        float: (int, float),
        int | None: (int, type(None)),
        float | None: (int, float, type(None)),
        RowStatus: (str,),
        tuple[float, ...]: (list,),
        dict[str, str]: (dict,),
    }
    return {name: kinds[hint] for name, hint in get_type_hints(Row).items()}


_HINTS = {f.name: f.type for f in fields(Row)}
_JSON_TYPES = _json_types()
