"""The process in which planners run: it takes tasks from a pipe and sends back what came of each.

A planner that crashes takes this process with it, and no more; `planner.bench.runner` starts another.
"""

from __future__ import annotations

import contextlib
import io
import logging
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from planner.bench.contenders import ContenderAnswer, Entrant, Infeasible, Unsupported, entrant_of
from planner.bench.kinds import only
from planner.bench.row import RowStatus
from solvers.choose.load_model import saves
from solvers.place.bounds import problem_bound
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.run import Options
from solvers.verifier import VerificationError, verify


@dataclass(frozen=True)
class Errand:
    """One run of one planner."""

    problem: Problem
    planner: str
    options: Options


@dataclass(frozen=True)
class WorkerReport:
    """What came of it; see `planner.bench.row.Row`."""

    status: RowStatus
    peak: int | None = None
    lower_bound: int | None = None
    saved: int = 0
    seconds: float = 0.0
    engine: str = ""
    struck: bool = False
    error: str = ""


READY = "ready"
"""Sent before the clock starts: the planner's packages are imported."""


def serve(pipe: Connection) -> None:
    """Work until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle
    logging.disable(logging.WARNING)
    warm: set[str] = set()
    while True:
        try:
            task: Errand = pipe.recv()
        except EOFError:
            return
        entrant = entrant_of(task.planner)
        with _quiet():
            if entrant.contender.name not in warm:
                _warm_up(entrant, task.options)
                warm.add(entrant.contender.name)
            pipe.send(READY)
            report = run(task, entrant)
        pipe.send(report)


def run(task: Errand, entrant: Entrant) -> WorkerReport:
    """Run one planner on one problem; whatever it raises is in the report."""
    problem = only(task.problem, entrant.sharing)
    start = time.perf_counter()
    try:
        answer = entrant.contender.run(problem, task.options)
    except Unsupported as error:
        return WorkerReport(RowStatus.UNSUPPORTED, error=str(error))
    except Infeasible as error:
        return WorkerReport(RowStatus.INFEASIBLE, error=str(error))
    except ImportError as error:
        why = f"{error.name or entrant.contender.packages[-1]} is missing: {entrant.contender.install}"
        return WorkerReport(RowStatus.MISSING, error=why)
    except Exception as error:  # a planner may raise anything
        return WorkerReport(RowStatus.CRASHED, error=_one_line(error), seconds=time.perf_counter() - start)
    return _judged(problem, answer, answer.seconds or time.perf_counter() - start)


def _judged(problem: Problem, answer: ContenderAnswer, seconds: float) -> WorkerReport:
    """The verifier has the word on the plan, and the load on the bound."""
    try:
        peak = verify(problem, Solution(answer.offsets, tuple(answer.active)))
    except (VerificationError, KeyError, TypeError) as error:
        return WorkerReport(RowStatus.WRONG, error=_one_line(error), seconds=seconds, engine=answer.engine)
    bound = answer.lower_bound or 0
    if len(problem.required) == len(problem.colocations):
        bound = max(bound, problem_bound(problem))
    saved = sum(saves(problem, k) for k in answer.active if not problem.colocations[k].required)
    status = RowStatus.OPTIMAL if peak <= bound else RowStatus.FEASIBLE
    return WorkerReport(status, peak, bound, saved, seconds, answer.engine, answer.struck)


def _warm_up(entrant: Entrant, options: Options) -> None:
    """Imports and first calls are not what is measured."""
    tiny = Problem([Buffer("a", 32, 0, 2), Buffer("b", 16, 1, 3), Buffer("c", 16, 2, 4)])
    with contextlib.suppress(Exception):
        entrant.contender.run(tiny, options)


@contextlib.contextmanager
def _quiet() -> Any:
    """What planners print by Python is not for our tables."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
    sys.stdout.flush()


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__
