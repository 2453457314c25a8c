"""What all stages of one solve share: the options, the clock, the trace, and the last word on a plan."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from solvers.deadline import Clock, Deadline, WorkClock
from solvers.problem.problem import Problem
from solvers.problem.result import Certificate, Progress, Result, Solution, Status
from solvers.verifier import verify

log = logging.getLogger("arena")

Listener = Callable[[Progress], None]


class Objective(StrEnum):
    """What to minimise where colocations are optional.

    ``peak``: the peak, then the bytes still copied. ``copies``: the bytes still copied, then the peak. ``weighted``:
    the peak plus ``copy_weight`` times the bytes still copied.
    """

    PEAK = "peak"
    COPIES = "copies"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class Options:
    """How to search, and for what.

    Parameters
    ----------
    time_limit : float
        Seconds.
    workers : int
        Threads; 0: one per core.
    seed : int
    progress : callable, optional
        Is told of every better plan or bound.
    objective : Objective
    copy_weight : float
        Bytes of peak that one copied byte is worth; for ``weighted``, to a thousandth.
    reproducible : bool
        Let work that is the same on every machine decide, not the clock: the same problem, options and versions of
        this package, ortools and numpy, with the native core or without, give the same plan, for any number of
        workers. ``time_limit`` is then in work
        seconds, about what one worker does in a second, and on the wall as well; if the wall limit strikes first, the
        result's ``struck`` says so.
    stop : threading.Event, optional
        When it is set, the best plan in hand is returned at once.

    Raises
    ------
    ValueError
        If the weight is negative or not finite.
    """

    time_limit: float = 10.0
    workers: int = 0
    seed: int = 0
    progress: Listener | None = None
    objective: Objective = Objective.PEAK
    copy_weight: float = 1.0
    reproducible: bool = False
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.copy_weight < math.inf:
            raise ValueError(f"copy_weight is {self.copy_weight}: it must be finite and at least 0")

    def clock(self) -> Clock:
        """A new clock for these limits, that starts now."""
        return (WorkClock if self.reproducible else Clock)(self.time_limit, self.stop)

    @property
    def threads(self) -> int:
        """The number of workers, at least 1."""
        return self.workers or os.cpu_count() or 1


@dataclass(frozen=True)
class VerifiedPlan:
    """A verified plan and its peak, bytes."""

    solution: Solution
    peak: int
    engine: str


@dataclass
class Run:
    """What all stages of one solve share: the problem (also without its capacity), the clock, the trace.

    ``proven`` is the floor for every choice of optional colocations, if there are any; that of one choice proves
    nothing then. ``clock`` is given where several solves share one.
    """

    problem: Problem
    options: Options
    trace: list[Progress] = field(default_factory=list)
    proven: int | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.options.time_limit, self.clock or self.options.clock())
        self.capacity = self.problem.capacity
        self.open_problem = self.problem
        if self.capacity is not None:
            self.open_problem = Problem(self.problem.buffers, self.problem.colocations, name=self.problem.name)

    def report(self, peak: int | None, bound: int, engine: str) -> None:
        line = Progress(self.deadline.elapsed, peak, bound if self.proven is None else self.proven, engine)
        self.trace.append(line)
        log.debug("%.3f s: peak %s, bound %d, %s", line.time, line.peak, line.lower_bound, line.engine)
        if self.options.progress:
            self.options.progress(line)

    def result(
        self,
        plan: VerifiedPlan | None,
        bound: int,
        engine: str,
        copies_optimal: bool = True,
        optimal: bool | None = None,
        impossible: bool = False,
        proof: str = "load",
        certificate: Certificate | None = None,
    ) -> Result:
        """Say what is proven about a plan, which is judged against the problem with its capacity if it has one.

        ``optimal`` where the bound alone does not decide it, ``impossible`` where it is proven that there is no plan.
        """
        solution = plan.solution if plan else None
        peak = plan.peak if plan else None
        if plan is None or (self.capacity is not None and plan.peak > self.capacity):
            impossible |= plan is None and self.proven is None
            impossible |= self.capacity is not None and bound > self.capacity
            status, solution = (Status.INFEASIBLE if impossible else Status.UNKNOWN), None
        else:
            if self.capacity is not None:
                verify(self.problem, plan.solution)
            proven = plan.peak <= bound if optimal is None else optimal
            status = Status.OPTIMAL if proven else Status.FEASIBLE
        self.report(peak, bound, engine)
        return Result(
            status,
            solution,
            peak,
            bound,
            engine,
            self.deadline.elapsed,
            copies_optimal,
            tuple(self.trace),
            proof,
            certificate,
            self.deadline.clock.halted,
        )
