"""The pipeline under one deadline: bound, greedy, stop when equal, then the race of searches.

Every plan is judged by `verify` before it counts. When time is up the best plan in hand is returned; once the first
verified plan exists, an overrun is at most a tenth of a second plus 5 %.
"""

from __future__ import annotations

from collections.abc import Callable

from solvers.choose.stages import Chooser, Search
from solvers.deadline import Clock
from solvers.place.fixed_choice import FixedChoice
from solvers.place.improve import improve, improve_by_cp_sat, improve_natively
from solvers.problem.problem import Problem
from solvers.problem.result import Result
from solvers.run import Options, Run


def solve(problem: Problem, solver: str = "auto", options: Options | None = None, clock: Clock | None = None) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
    solver : str
        A name from `SOLVERS`.
    options : Options, optional
    clock : Clock, optional
        Where several solves share one: `Options.clock` makes it.

    Returns
    -------
    Result
        With a verified solution, unless infeasible or unknown.

    Raises
    ------
    ValueError
        If the solver is not known.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver is {solver!r}: it must be one of {', '.join(SOLVERS)}")
    run = Run(problem, options or Options(), clock=clock)
    return SOLVERS[solver](run)


def _solve(run: Run, search: Search | None, always: bool = False) -> Result:
    if len(run.problem.required) < len(run.problem.colocations):
        return Chooser(run, search, always).solve()
    shape = FixedChoice(run, run.problem.required, run.deadline)
    if shape.collision:
        return run.result(None, shape.bound, "pinned buffers", proof="pinned buffers")
    shape.greedy()
    if search is not None:
        search(shape)
    proof, certificate = shape.proof, shape.certificate()
    return run.result(shape.plan(), shape.bound, shape.engine, proof=proof, certificate=certificate)


def _auto(run: Run) -> Result:
    return _solve(run, improve)


def _cp_sat(run: Run) -> Result:
    return _solve(run, improve_by_cp_sat, always=True)


def _native(run: Run) -> Result:
    return _solve(run, improve_natively)


def _greedy(run: Run) -> Result:
    return _solve(run, None)


SOLVERS: dict[str, Callable[[Run], Result]] = {"auto": _auto, "cp-sat": _cp_sat, "native": _native, "greedy": _greedy}
"""Every solver by name; all obey one contract: a verified plan, the best in hand when time is up."""
