"""JSON lock files, version 1: read, written, and the hash by which a plan is found again.

::

    {"format": "arena-lock", "version": 1,
     "graphs": [{"graph", "problem_sha256", "active": [indices of ties], "best_assignment", "fallbacks",
                 "arenas": [{"mem_id", "status", "peak", "lower_bound", "solver", "proof", "copies_optimal",
                             "offsets": {id: bytes}}]},
                {"graph", "problem_sha256", "refused": "why no plan of it is to be used"}]}

Graphs are in the order of planning; keys and offsets are sorted, and nothing depends on when or where a plan was made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from planner.api import Plan, Planner
from planner.program.banking import weights_of
from solvers.files.json_format import VERSION, items_of, json_object, only_keys, require_keys
from solvers.files.text import FileError
from solvers.problem.buffers import Colocation, ProblemError, check_int
from solvers.problem.result import Status
from solvers.run import Objective

LOCK_FORMAT = "arena-lock"


@dataclass(frozen=True)
class LockedArena:
    """The plan of one arena: its peak and bound in bytes, what is proven and by whom, and the offsets in bytes."""

    mem_id: int
    status: str
    peak: int
    lower_bound: int
    solver: str
    proof: str
    copies_optimal: bool
    offsets: Mapping[str, int]

    def __post_init__(self) -> None:
        _check_types(self, {"status": str, "solver": str, "proof": str, "copies_optimal": bool, "offsets": dict})
        for name in ("mem_id", "peak", "lower_bound"):
            check_int(getattr(self, name), name, 0)
        if self.status not in (Status.OPTIMAL, Status.FEASIBLE):
            raise ProblemError(f"status is {self.status!r}: it must be optimal or feasible")
        if self.lower_bound > self.peak:
            raise ProblemError(f"lower_bound is {self.lower_bound}: it must be at most the peak, {self.peak}")
        for i, offset in self.offsets.items():
            check_int(offset, f"offset of {i!r}", 0)


@dataclass(frozen=True)
class LockedGraph:
    """The plan of one graph, or why no plan of it is to be used.

    Attributes
    ----------
    graph : str
        For people: "method 0", "branch in method 0".
    problem_sha256 : str
        `request_hash` of what was asked.
    arenas : tuple of LockedArena
    active : tuple of int
        Of the ties to choose from, those that the offsets keep (indices).
    best_assignment : bool
        With banks: it is proven that no plan has more in faster banks.
    fallbacks : tuple of str
        What was given up, and why.
    refused : str
        If not empty: the judges refused the plan that was found, so that the next that asks for less is the one.
    """

    graph: str
    problem_sha256: str
    arenas: tuple[LockedArena, ...] = ()
    active: tuple[int, ...] = ()
    best_assignment: bool = True
    fallbacks: tuple[str, ...] = ()
    refused: str = ""

    def __post_init__(self) -> None:
        types = {"graph": str, "problem_sha256": str, "best_assignment": bool, "refused": str}
        _check_types(self, types | dict.fromkeys(("arenas", "active", "fallbacks"), tuple))
        if not re.fullmatch("[0-9a-f]{64}", self.problem_sha256):
            raise ProblemError(f"problem_sha256 is {self.problem_sha256!r}: it must be 64 digits, 0-9 and a-f")
        for k in self.active:
            check_int(k, "index of an active tie", 0)
        for why in self.fallbacks:
            if not isinstance(why, str):
                raise ProblemError(f"fallbacks has {why!r}: it must be a string")


def locked_graph(graph: str, key: str, planner: Planner, plan: Plan) -> LockedGraph:
    """A plan, ready to be written."""
    arenas = []
    for mem_id, r in sorted(plan.results.items()):
        assert r.solution is not None
        stated = (str(r.status), r.peak or 0, r.lower_bound, r.solver, r.proof, r.copies_optimal)
        arenas.append(LockedArena(mem_id, *stated, dict(r.solution.offsets)))
    active = tuple(k for k, c in enumerate(planner.sharing.ties) if c in plan.active)
    return LockedGraph(graph, key, tuple(arenas), active, plan.best_assignment, plan.fallbacks)


def lock_to_json(graphs: tuple[LockedGraph, ...]) -> str:
    """The graphs as JSON; reading it gives equal graphs."""
    data = {"format": LOCK_FORMAT, "version": VERSION, "graphs": [_object(g) for g in graphs]}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def lock_from_json(text: str, path: str = "model.arena.json") -> tuple[LockedGraph, ...]:
    """Read a lock file; ``path`` is for messages. Raises `FileError`."""
    data = json_object(text, path, LOCK_FORMAT)
    only_keys(data, ("format", "version", "graphs"), f"{path}:1")
    if "graphs" not in data:
        raise FileError(f"{path}:1: 'graphs' is missing")
    return tuple(items_of(text, path, data, "graphs", _graph))


def request_hash(planner: Planner) -> str:
    """SHA-256 of what a plan is asked to be: the tensors and their lifetimes, the ties to choose from, banks, reserved
    bytes, objective. Neither what the program computes nor how the plan is looked for: not its weights, nor the seed,
    the workers and the time limit."""
    flow, request = planner.flow, planner.request
    offered = planner.problems(planner.sharing.ties)
    ids = {b.id for p in offered.values() for b in p.buffers}
    options = request.options
    canonical = {
        "format": LOCK_FORMAT,
        "version": VERSION,
        "arenas": [
            [arena, sorted([b.id, b.size, b.start, b.end, b.alignment, b.offset] for b in p.buffers)]
            for arena, p in sorted(offered.items())
        ],
        "tensors": sorted([t.id, t.nbytes, t.alignment, t.itemsize, t.rigid] for t in flow.tensors if t.id in ids),
        "required": [_tie(c) for c in flow.ties],
        "ties": [_tie(c) for c in planner.sharing.ties],
        "min_part_alignment": request.policy.min_part_alignment,
        "banks": [[b.mem_id, b.size, b.alignment] for b in request.banks],
        "weights": sorted((i, n) for i, n in weights_of(flow).items() if i in ids) if request.banks else [],
        "objective": options.objective,
        "copy_weight": options.copy_weight if options.objective is Objective.WEIGHTED else None,
    }
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()


def _tie(c: Colocation) -> list[object]:
    return [c.part, c.whole, c.at, c.kind, c.saves]


def _object(g: LockedGraph) -> dict[str, Any]:
    data: dict[str, Any] = {"graph": g.graph, "problem_sha256": g.problem_sha256}
    if g.refused:
        return data | {"refused": g.refused}
    arenas = [{f.name: getattr(a, f.name) for f in fields(a)} for a in g.arenas]
    return data | {
        "arenas": arenas,
        "active": g.active,
        "best_assignment": g.best_assignment,
        "fallbacks": g.fallbacks,
    }


_KEYS = {f.name for f in fields(LockedGraph)}
_ARENA_KEYS = {f.name for f in fields(LockedArena)}


def _graph(item: Mapping[str, Any]) -> LockedGraph:
    if item.get("refused"):
        require_keys(item, ("graph", "problem_sha256", "refused"), ("graph", "problem_sha256"))
        return LockedGraph(**item)
    known = _KEYS - {"refused"}
    require_keys(item, known, sorted(known))
    lists = {key: tuple(v) if isinstance(v := item[key], list) else v for key in ("active", "fallbacks", "arenas")}
    if isinstance(lists["arenas"], tuple):
        lists["arenas"] = tuple(_arena(k, a) for k, a in enumerate(lists["arenas"]))
    return LockedGraph(**{**item, **lists})


def _arena(k: int, item: object) -> LockedArena:
    try:
        if not isinstance(item, dict):
            raise ProblemError(f"it is a {type(item).__name__}: it must be an object")
        require_keys(item, _ARENA_KEYS, sorted(_ARENA_KEYS))
        return LockedArena(**item)
    except ProblemError as error:
        raise ProblemError(f"arenas[{k}]: {error}") from None


def _check_types(thing: object, types: Mapping[str, type]) -> None:
    for name, kind in types.items():
        if type(value := getattr(thing, name)) is not kind:
            raise ProblemError(f"{name} is a {type(value).__name__}: that is the wrong type")
