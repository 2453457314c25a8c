"""Problems times planners, each run in a worker process; rows come as the problems end."""

from __future__ import annotations

import functools
import multiprocessing
import os
import platform
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from planner.bench.contenders import Entrant
from planner.bench.row import Row, RowStatus
from planner.bench.summary import with_excess
from planner.bench.worker import READY, Errand, WorkerReport, serve
from solvers.files.json_format import problem_hash
from solvers.problem.problem import Problem
from solvers.run import Options

STARTING = 120.0
"""Seconds that a worker may take to import what a planner needs."""


@dataclass(frozen=True)
class Campaign:
    """What to measure.

    Attributes
    ----------
    problems : sequence of Problem
    entrants : sequence of Entrant
    options : Options
        Of every planner: time limit in seconds, workers, seed.
    runs : int
        Of each; the planners of a problem take turns.
    jobs : int
        Problems at a time.
    patience : float
        Seconds after which a planner that does not answer is stopped.
    """

    problems: Sequence[Problem]
    entrants: Sequence[Entrant]
    options: Options
    runs: int = 1
    jobs: int = 1
    patience: float = 60.0


class Measured(NamedTuple):
    """What came of one problem: the rows that were asked for, and all that there are of it."""

    asked: list[Row]
    every: list[Row]


Tell = Callable[[str], None]
"""Is told ``problem: planner`` as each begins."""

Done = Callable[[Row], None]
"""Gets every row, still without its excess, as soon as its planner has run."""


def measure(
    plan: Campaign, known: Sequence[Row] = (), tell: Tell = lambda line: None, done: Done = lambda row: None
) -> Iterator[Measured]:
    """Measure what is not known yet.

    Parameters
    ----------
    plan : Campaign
    known : sequence of Row
        Measured before: what was asked there is not asked again.
    tell, done : callable, optional
        ``done`` is called in other threads.

    Yields
    ------
    Measured
        The rows of a problem, with their excess, as soon as all its planners ran.
    """
    before: dict[tuple[str, str], list[Row]] = {}
    for row in known:
        before.setdefault((row.problem, row.sha256), []).append(row)
    idle: SimpleQueue[Worker] = SimpleQueue()
    workers = [Worker() for _ in range(plan.jobs)]
    for worker in workers:
        idle.put(worker)

    def one(problem: Problem) -> Measured:
        worker = idle.get()
        try:
            return _measure(plan, problem, before, worker, tell, done)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(plan.jobs)
    waiting: set[Future[Measured]] = {pool.submit(one, p) for p in plan.problems}
    try:
        while waiting:
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=lambda f: f.result().every[0].problem):
                yield future.result()
    finally:
        for future in waiting:
            future.cancel()
        for worker in workers:
            worker.stop()
        pool.shutdown(wait=True, cancel_futures=True)


def _measure(
    plan: Campaign,
    problem: Problem,
    before: dict[tuple[str, str], list[Row]],
    worker: Worker,
    tell: Tell,
    done: Done,
) -> Measured:
    sha256 = problem_hash(problem)
    known = before.get((problem.name, sha256), [])
    blank = {e.name: _blank(plan, problem, sha256, e) for e in plan.entrants}
    asked = {row.asked for row in blank.values()}
    known = [row for row in known if row.lasting or row.asked not in asked]
    there = {row.asked for row in known}
    todo = [name for name, row in blank.items() if row.asked not in there]
    reports: dict[str, list[WorkerReport]] = {name: [] for name in todo}
    rows: dict[str, Row] = {}
    for number in range(1, plan.runs + 1):
        for name in todo:
            if name in rows:
                continue  # it will not be better the next time
            tell(f"{problem.name}: {name}")
            report = worker.run(Errand(problem, name, plan.options), plan.patience)
            if worker.closed:
                raise CancelledError  # the run was cut off
            reports[name].append(report)
            if report.peak is None or number == plan.runs:
                rows[name] = _filled(blank[name], reports[name])
                done(rows[name])
    every = with_excess([*known, *(rows[name] for name in todo)])
    return Measured([row for row in every if row.asked in asked], every)


def _blank(plan: Campaign, problem: Problem, sha256: str, entrant: Entrant) -> Row:
    o = plan.options
    what = (problem.name, sha256, len(problem.buffers), entrant.name, entrant.kinds)
    row = Row(*what, o.time_limit, o.workers, o.seed, plan.runs, plan.jobs, RowStatus.CRASHED)
    return replace(row, versions=_versions(entrant.contender.packages), machine=machine())


def _filled(row: Row, reports: Sequence[WorkerReport]) -> Row:
    """The row of one planner: the plan is the first run's, the time the median of all."""
    first, last = reports[0], reports[-1]
    if last.peak is None:
        return replace(row, status=last.status, engine=last.engine, error=last.error)
    times = tuple(r.seconds for r in reports)
    bound = first.lower_bound
    gap = None if bound is None else (first.peak - bound) / first.peak if first.peak else 0.0
    return replace(
        row,
        status=first.status,
        peak=first.peak,
        lower_bound=bound,
        gap=gap,
        saved=first.saved,
        seconds=statistics.median(times),
        times=times,
        engine=first.engine,
        struck=first.struck,
    )


@functools.cache
def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@functools.cache
def machine() -> dict[str, str]:
    """The machine, as rows name it."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        names = [line.partition(":")[2].strip() for line in cpus.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "python": platform.python_version(),
    }


class Worker:
    """A worker process, started when it is needed and again when it died or was stopped.

    Parameters
    ----------
    target : callable
        What runs in it; gets its end of the pipe.
    """

    def __init__(self, target: Callable[[Connection], None] = serve) -> None:
        self.target = target
        self.process: BaseProcess | None = None
        self.pipe: Connection | None = None
        self.closed = False
        self.lock = threading.Lock()

    def run(self, task: Errand, patience: float) -> WorkerReport:
        """Run a task; a death or a silence longer than ``patience`` seconds is a report as well."""
        try:
            pipe = self._started()
            pipe.send(task)
            for allowed in (STARTING, patience):
                if not pipe.poll(allowed):
                    self.kill()
                    return WorkerReport(RowStatus.OVERRUN, error=f"no answer after {allowed:g} s")
                answer = pipe.recv()
                if answer != READY:
                    assert isinstance(answer, WorkerReport)
                    return answer
            raise AssertionError("a worker answers once")
        except (EOFError, OSError):
            code = self.kill()
            return WorkerReport(RowStatus.CRASHED, error=f"its process died, exit code {code}")

    def _started(self) -> Connection:
        with self.lock:
            if self.closed:
                raise EOFError
            if self.process is None or self.pipe is None:
                context = multiprocessing.get_context("spawn")
                self.pipe, theirs = context.Pipe()
                self.process = context.Process(target=self.target, args=(theirs,), daemon=True)
                self.process.start()
                theirs.close()
            return self.pipe

    def kill(self) -> int | None:
        """Stop the process, if there is one; its exit code, if it ended by itself."""
        with self.lock:
            process, self.process = self.process, None
            if process is None:
                return None
            process.join(0.2)
            code = process.exitcode
            process.kill()
            process.join()
            return code

    def stop(self) -> None:
        """Stop it for good."""
        self.closed = True
        self.kill()
