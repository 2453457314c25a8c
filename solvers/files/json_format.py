"""JSON problems and plans, version 1: read, written, hashed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solvers.banks.bank import Bank, BankResult, check_banks
from solvers.files.text import FileError, line_at, line_of_key
from solvers.problem.buffers import LIMIT, Buffer, Colocation, Kind, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution, Status

PROBLEM_FORMAT, PLAN_FORMAT, VERSION = "arena-problem", "arena-plan", 1

_PROBLEM_KEYS = {"format", "version", "name", "capacity", "buffers", "colocations"}
_BUFFER_KEYS = {"id", "size", "start", "end", "alignment", "offset", "label"}
_COLOCATION_KEYS = {"part", "whole", "at", "kind", "required", "saves"}


@dataclass(frozen=True)
class PlanFile:
    """What a JSON plan holds. ``arenas`` has mem_id, peak and lower_bound (bytes) of each arena; of a bank also its
    name, capacity (bytes), and alignment if it has one of its own. ``arena_of`` has the index of each buffer's arena,
    where there are several."""

    problem_sha256: str
    status: str
    copies_optimal: bool
    parameters: Mapping[str, Any]
    solver: str
    wall_time: float
    arenas: tuple[Mapping[str, Any], ...]
    offsets: Mapping[str, int]
    active: tuple[int, ...] = ()
    arena_of: Mapping[str, int] = field(default_factory=dict)


def problem_from_json(text: str, path: str = "problem.json", optional: bool = False) -> Problem:
    """Read a JSON problem; ``path`` is for messages. Raises `FileError`."""
    data = json_object(text, path, PROBLEM_FORMAT)
    only_keys(data, _PROBLEM_KEYS, f"{path}:1")
    if "buffers" not in data:
        raise FileError(f"{path}:1: 'buffers' is missing")
    name = data.get("name", "")
    if not isinstance(name, str):
        raise FileError(f"{path}:{line_of_key(text, 'name')}: name is {name!r}: it must be a string")
    buffers = items_of(text, path, data, "buffers", _json_buffer)
    colocations = items_of(text, path, data, "colocations", lambda item: _json_colocation(item, optional))
    try:
        return Problem(buffers, colocations, data.get("capacity"), name)
    except ProblemError as error:
        raise FileError(f"{_blame(text, path, data, str(error))}: {error}") from None


def _json_buffer(item: Mapping[str, Any]) -> Buffer:
    require_keys(item, _BUFFER_KEYS, ("id", "size", "start", "end"))
    label = item.get("label")
    if label is not None and not isinstance(label, str):
        raise ProblemError(f"label is {label!r}: it must be a string")
    return Buffer(
        item["id"], item["size"], item["start"], item["end"], item.get("alignment", 1), item.get("offset"), label
    )


def _json_colocation(item: Mapping[str, Any], optional: bool) -> Colocation:
    require_keys(item, _COLOCATION_KEYS, ("part", "whole", "at"))
    kind = item.get("kind", "same")
    if kind not in tuple(Kind):
        raise ProblemError(f"kind is {kind!r}: it must be one of {', '.join(Kind)}")
    required = False if optional else item.get("required", True)
    return Colocation(item["part"], item["whole"], item["at"], Kind(kind), required, item.get("saves"))


def problem_to_json(problem: Problem) -> str:
    """The problem as JSON; reading it gives an equal problem."""
    data: dict[str, Any] = {"format": PROBLEM_FORMAT, "version": VERSION, "name": problem.name}
    if problem.capacity is not None:
        data["capacity"] = problem.capacity
    data["buffers"] = [
        _present(b, ("id", "size", "start", "end", "alignment", "offset", "label")) for b in problem.buffers
    ]
    if problem.colocations:
        data["colocations"] = [
            _present(c, ("part", "whole", "at", "kind", "required", "saves")) for c in problem.colocations
        ]
    lines = ["{"]
    for n, (key, value) in enumerate(data.items()):
        comma = "," if n + 1 < len(data) else ""
        if isinstance(value, list):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f' "{key}": [\n  {rows}\n ]{comma}' if value else f' "{key}": []{comma}')
        else:
            lines.append(f' "{key}": {json.dumps(value)}{comma}')
    return "\n".join([*lines, "}"]) + "\n"


def problem_hash(problem: Problem) -> str:
    """SHA-256 of what matters in a problem: neither labels nor its name, nor the order of its buffers."""
    canonical = {
        "format": PROBLEM_FORMAT,
        "version": VERSION,
        "capacity": problem.capacity,
        "buffers": sorted([b.id, b.size, b.start, b.end, b.alignment, b.offset] for b in problem.buffers),
        "colocations": [[c.part, c.whole, c.at, c.kind, c.required, c.saves] for c in problem.colocations],
    }
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()


def plan_file(problem: Problem, result: Result, parameters: Mapping[str, Any]) -> PlanFile:
    """The plan of a result that has a solution, ready to be written."""
    assert result.solution is not None
    arena = {"mem_id": 1, "peak": result.peak, "lower_bound": result.lower_bound}
    return PlanFile(
        problem_hash(problem),
        str(result.status),
        result.copies_optimal,
        dict(parameters),
        result.solver,
        result.wall_time,
        (arena,),
        dict(result.solution.offsets),
        result.solution.active,
    )


def bank_plan_file(problem: Problem, result: BankResult, parameters: Mapping[str, Any]) -> PlanFile:
    """The plan of a result with banks that has a solution, ready to be written."""
    assert result.solution is not None
    arenas = []
    for bank, r in zip(result.banks, result.results, strict=True):
        arena: dict[str, Any] = {"mem_id": bank.mem_id, "peak": r.peak, "lower_bound": r.lower_bound}
        arena |= {"name": bank.name, "capacity": bank.size}
        arenas.append(arena | ({"alignment": bank.alignment} if bank.alignment is not None else {}))
    return PlanFile(
        problem_hash(problem),
        str(result.status),
        len(problem.required) == len(problem.colocations),
        dict(parameters),
        " and ".join(dict.fromkeys(r.solver for r in result.results)),
        result.wall_time,
        tuple(arenas),
        dict(result.solution.offsets),
        result.solution.active,
        dict(result.bank_of),
    )


def banks_of(plan: PlanFile, path: str) -> tuple[Bank, ...]:
    """The banks that a plan states, as large as can be where it states no capacity; none if it is one for a single
    arena. Raises `FileError`."""
    if not plan.arena_of and not any("capacity" in a for a in plan.arenas):
        return ()
    largest = LIMIT // max(1, len(plan.arenas))
    try:
        banks = [
            Bank(a.get("name", f"mem_id {a['mem_id']}"), a.get("capacity", largest), a["mem_id"], a.get("alignment"))
            for a in plan.arenas
        ]
        check_banks(banks)
    except ProblemError as error:
        raise FileError(f"{path}: arenas: {error}") from None
    return tuple(banks)


def plan_to_json(plan: PlanFile) -> str:
    """The plan as JSON; reading it gives an equal plan."""
    data: dict[str, Any] = {"format": PLAN_FORMAT, "version": VERSION}
    for key in ("problem_sha256", "status", "copies_optimal", "parameters", "solver", "wall_time", "arenas", "offsets"):
        value = getattr(plan, key)
        data[key] = list(value) if isinstance(value, tuple) else value
    if plan.arena_of:
        data["arena_of"] = dict(plan.arena_of)
    data["active"] = list(plan.active)
    return json.dumps(data, indent=1) + "\n"


def plan_from_json(text: str, path: str = "plan.json") -> PlanFile:
    """Read a JSON plan; ``path`` is for messages. Raises `FileError`."""
    data = json_object(text, path, PLAN_FORMAT)
    known = {*PlanFile.__dataclass_fields__, "format", "version"}
    only_keys(data, known, f"{path}:1")
    for key, default in (("arena_of", {}), ("active", [])):
        data.setdefault(key, default)
    types = {
        "problem_sha256": str,
        "status": str,
        "copies_optimal": bool,
        "parameters": dict,
        "solver": str,
        "wall_time": (int, float),
        "arenas": list,
        "offsets": dict,
        "arena_of": dict,
        "active": list,
    }
    for key, kind in types.items():
        if key not in data:
            raise FileError(f"{path}:1: {key!r} is missing")
        if not isinstance(data[key], kind):  # type: ignore[arg-type]
            raise FileError(
                f"{path}:{line_of_key(text, key)}: {key} is a {type(data[key]).__name__}: that is the wrong type"
            )
    integers: Iterable[Any] = (*data["offsets"].values(), *data["arena_of"].values(), *data["active"])
    for value in integers:
        if isinstance(value, bool) or not isinstance(value, int):
            raise FileError(f"{path}:{line_of_key(text, 'offsets')}: {value!r} is no integer")
    for k, arena in enumerate(data["arenas"]):
        for key in ("mem_id", "peak", "lower_bound"):
            if not isinstance(arena, dict) or type(arena.get(key)) is not int:
                line = line_of_key(text, "arenas")
                raise FileError(f"{path}:{line}: arenas[{k}]: it must be an object in which {key!r} is an integer")
    if data["status"] not in tuple(Status):
        line = line_of_key(text, "status")
        raise FileError(f"{path}:{line}: status is {data['status']!r}: it must be one of {', '.join(Status)}")
    values: dict[str, Any] = {key: tuple(data[key]) if isinstance(data[key], list) else data[key] for key in types}
    return PlanFile(**values)


def solution_of(plan: PlanFile, problem: Problem, path: str) -> Solution:
    """The plan as a solution of the problem. Raises `FileError` if it is another problem's."""
    if plan.problem_sha256 != problem_hash(problem):
        raise FileError(f"{path}: the plan belongs to another problem: its problem_sha256 is {plan.problem_sha256}")
    return Solution(dict(plan.offsets), plan.active)


def json_object(text: str, path: str, wanted: str) -> dict[str, Any]:
    """The object that a file of the format ``wanted``, version 1, holds. Raises `FileError`."""

    def refuse(word: str) -> Any:
        raise FileError(f"{path}:{line_at(text, max(text.find(word), 0))}: {word} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FileError(f"{path}:{line_of_key(text, twice)}: key {twice!r} occurs twice in one object")
        return dict(pairs)

    try:
        data = json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}:1: not JSON that can be read: {error}") from None
    if not isinstance(data, dict):
        raise FileError(f"{path}:1: the file holds a {type(data).__name__}: it must be an object")
    if data.get("format") != wanted:
        raise FileError(
            f"{path}:{line_of_key(text, 'format')}: format is {data.get('format')!r}: it must be {wanted!r}"
        )
    if data.get("version") != VERSION or isinstance(data.get("version"), bool):
        line = line_of_key(text, "version")
        raise FileError(f"{path}:{line}: version is {data.get('version')!r}: only version {VERSION} is known")
    return data


def items_of(text: str, path: str, data: Mapping[str, Any], key: str, make: Any) -> list[Any]:
    """What ``make`` makes of each object in a list of the top level. Its `ProblemError` becomes a `FileError`."""
    items = data.get(key, [])
    if not isinstance(items, list):
        raise FileError(f"{path}:{line_of_key(text, key)}: {key} is a {type(items).__name__}: it must be a list")
    out = []
    for k, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise ProblemError(f"it is a {type(item).__name__}: it must be an object")
            out.append(make(item))
        except ProblemError as error:
            raise FileError(f"{path}:{_item_line(text, key, k)}: {key}[{k}]: {error}") from None
    return out


def _blame(text: str, path: str, data: Mapping[str, Any], message: str) -> str:
    """``path:line`` of the last item whose ids the message names."""
    for key, names in (("colocations", ("part", "whole")), ("buffers", ("id",))):
        items = data.get(key, [])
        for k in reversed(range(len(items))):
            if all(repr(items[k][n]) in message for n in names):
                return f"{path}:{_item_line(text, key, k)}"
    return f"{path}:1"


def require_keys(item: Mapping[str, Any], known: Collection[str], needed: Sequence[str]) -> None:
    """Raise `ProblemError` unless an object has the keys that are needed, and none that is not known."""
    for key in needed:
        if key not in item:
            raise ProblemError(f"{key!r} is missing")
    for key in item:
        if key not in known:
            raise ProblemError(f"{key!r} is unknown: the keys are {', '.join(sorted(known))}")


def only_keys(data: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise `FileError` if the top level has a key that is not known."""
    for key in data:
        if key not in known:
            raise FileError(f"{where}: {key!r} is unknown: the keys are {', '.join(sorted(known))}")


def _present(thing: Any, names: Sequence[str]) -> dict[str, Any]:
    return {n: v for n in names if (v := getattr(thing, n)) is not None}


def _item_line(text: str, key: str, index: int) -> int:
    """Line of an element of a top-level list."""
    found = re.search(rf'"{key}"\s*:\s*\[', text)
    if not found:
        return 1
    position, decoder = found.end(), json.JSONDecoder()
    for _ in range(index):
        while text[position] in " \t\r\n,":
            position += 1
        _, position = decoder.raw_decode(text, position)
    while text[position] in " \t\r\n,":
        position += 1
    return line_at(text, position)
