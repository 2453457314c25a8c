"""Every planner that can be measured, by name: one adapter each, from a problem to an answer.

A name may end in the kinds of sharing that the planner is offered, ``auto+concats+in-place`` or ``auto+all``; without,
tensors are placed whole. Required colocations always count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.bench.kinds import ShareKind
from planner.bench.peers import (
    PeerAnswer,
    omnimalloc_greedy,
    omnimalloc_minimalloc,
    supermalloc,
    telamalloc,
    vela,
)
from solvers.files.text import FileError
from solvers.place.stock import stock_applies, stock_greedy, stock_naive
from solvers.problem.problem import Problem
from solvers.run import Options
from solvers.search import SOLVERS, solve


@dataclass(frozen=True)
class ContenderAnswer:
    """What a planner says of a problem.

    Attributes
    ----------
    offsets : dict of str to int
        Bytes.
    active : tuple of int
        Indices of the active colocations.
    lower_bound : int or None
        Bytes, if it proves any.
    engine : str
        Which part of it found this.
    struck : bool
        Did the time limit end the search, as far as the planner says?
    seconds : float or None
        Of the planner itself, where the way to it takes long.
    """

    offsets: Mapping[str, int]
    active: tuple[int, ...] = ()
    lower_bound: int | None = None
    engine: str = ""
    struck: bool = False
    seconds: float | None = None


RunsOn = Callable[[Problem, Options], ContenderAnswer]


class Unsupported(Exception):
    """The planner cannot plan problems of this kind; the message says which kind."""


class Infeasible(Exception):
    """There is no plan; the message says why."""


@dataclass(frozen=True)
class Contender:
    """A planner.

    Attributes
    ----------
    name : str
    run : callable
        From a problem and options (time limit, workers, seed) to an answer.
    packages : tuple of str
        Distributions whose versions matter.
    about : str
        One line for people.
    ties : bool
        Does it know colocations? Only ours do.
    install : str
        What to install where a package is missing.
    """

    name: str
    run: RunsOn
    packages: tuple[str, ...]
    about: str
    ties: bool = False
    install: str = "pip install 'arena-planner[bench]'"


def _ours(solver: str) -> RunsOn:
    def run(problem: Problem, options: Options) -> ContenderAnswer:
        result = solve(problem, solver, options)
        if result.solution is None:
            raise Infeasible(f"{result.status}: pinned buffers overlap while both live")
        offsets, active = result.solution.offsets, result.solution.active
        return ContenderAnswer(offsets, active, result.lower_bound, result.solver, result.struck)

    return run


def _whole(place: Callable[[Problem, Options], PeerAnswer], engine: str) -> RunsOn:
    """An adapter for a planner of whole tensors under one alignment, without pins."""

    def run(problem: Problem, options: Options) -> ContenderAnswer:
        _check_plain(problem)
        offsets, bound = place(problem, options)
        return ContenderAnswer(offsets, lower_bound=bound, engine=engine)

    return run


def _check_plain(problem: Problem) -> None:
    if not stock_applies(problem):
        raise Unsupported("it plans no required colocations, no pins, and one alignment that serves all buffers")


def _executorch(name: str) -> RunsOn:
    def run(problem: Problem, options: Options) -> ContenderAnswer:
        from planner.executorch import stock_planners

        _check_plain(problem)
        offsets, seconds = stock_planners.PLANNERS[name](problem)
        return ContenderAnswer(offsets, engine=name, seconds=seconds)

    return run


def _restated(place: Callable[[Problem], dict[str, int]], engine: str) -> RunsOn:
    return _whole(lambda problem, options: (place(problem), None), engine)


_OURS = ("arena-planner", "ortools", "numpy")
_EXECUTORCH = ("executorch", "torch")
_INSTALL = "pip install 'arena-planner[executorch]'"

_ABOUT = {
    "auto": "greedy orders, then a race of searches",
    "cp-sat": "greedy orders, then CP-SAT alone",
    "native": "greedy orders, then the native search alone",
    "greedy": "greedy orders alone",
}

CONTENDERS: dict[str, Contender] = {
    c.name: c
    for c in (
        *(Contender(name, _ours(name), _OURS, _ABOUT[name], ties=True) for name in SOLVERS),
        Contender("stock-greedy", _restated(stock_greedy, "greedy"), ("arena-planner",), "ExecuTorch's, restated"),
        Contender("stock-naive", _restated(stock_naive, "naive"), ("arena-planner",), "ExecuTorch's, restated"),
        Contender("executorch-greedy", _executorch("greedy"), _EXECUTORCH, "ExecuTorch's own", install=_INSTALL),
        Contender("executorch-naive", _executorch("naive"), _EXECUTORCH, "ExecuTorch's own", install=_INSTALL),
        Contender("cadence", _executorch("cadence"), _EXECUTORCH, "Cadence's heuristic greedy", install=_INSTALL),
        Contender(
            "cadence-position", _executorch("cadence-position"), _EXECUTORCH, "Cadence's first fit", install=_INSTALL
        ),
        Contender("vela", _whole(vela, "hill climb"), ("ethos-u-vela",), "Vela's hill climb"),
        Contender("supermalloc", _whole(supermalloc, "supermalloc"), ("omnimalloc",), "omnimalloc's branch and bound"),
        Contender("telamalloc", _whole(telamalloc, "telamalloc"), ("omnimalloc",), "omnimalloc's TelaMalloc"),
        Contender(
            "minimalloc",
            _whole(omnimalloc_minimalloc, "minimalloc"),
            ("omnimalloc", "minimalloc"),
            "MiniMalloc, minimising, by omnimalloc",
            install="build github.com/google/minimalloc; no package index has it",
        ),
        Contender(
            "omnimalloc-greedy", _whole(omnimalloc_greedy, "greedy"), ("omnimalloc",), "omnimalloc's greedy orders"
        ),
    )
}
"""By name."""


@dataclass(frozen=True)
class Entrant:
    """A planner, and the kinds of sharing that it is offered."""

    name: str
    contender: Contender
    sharing: frozenset[ShareKind] = field(default_factory=frozenset)

    @property
    def kinds(self) -> str:
        """``none``, ``all``, or the kinds."""
        if len(self.sharing) == len(ShareKind):
            return "all"
        return "+".join(k for k in ShareKind if k in self.sharing) or "none"


def entrant_of(text: str) -> Entrant:
    """The planner of a name like ``auto+concats``.

    Raises
    ------
    FileError
        If there is no such planner, no such kind of sharing, or the planner knows no sharing.
    """
    name, *kinds = text.split("+")
    if name not in CONTENDERS:
        raise FileError(f"--solvers: {name!r} is no planner: it must be one of {', '.join(CONTENDERS)}")
    known = [*ShareKind, "all"]
    for kind in kinds:
        if kind not in known:
            raise FileError(f"--solvers: {text!r}: {kind!r} is no sharing: it must be one of {', '.join(known)}")
    if kinds and not CONTENDERS[name].ties:
        raise FileError(f"--solvers: {text!r}: {name} knows no sharing")
    chosen = frozenset(ShareKind) if "all" in kinds else frozenset(ShareKind(k) for k in kinds)
    return Entrant(text, CONTENDERS[name], chosen)
