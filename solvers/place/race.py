"""Jobs side by side: the first proof ends all, or, to be reproducible, the first in the list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from solvers.deadline import POLL, Deadline
from solvers.problem.reduce import Column


class Verdict(StrEnum):
    """What one call found."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Answer:
    """``bases`` in units, by block, if placed; ``lower_bound`` in bytes, 0 if none was proven; ``work`` in seconds."""

    verdict: Verdict
    bases: Column | None = None
    lower_bound: int = 0
    engine: str = ""
    work: float = 0.0


UNKNOWN = Answer(Verdict.UNKNOWN)


class Job(Protocol):
    """One search with its own limits."""

    def run(self) -> Answer:
        """Search."""

    def stop(self) -> None:
        """End soon."""


class _Race:
    def __init__(self, jobs: Sequence[Job], ends: Callable[[Answer], bool], in_order: bool) -> None:
        self.jobs = jobs
        self.ends = ends
        self.in_order = in_order
        self.answers: list[Answer] = [UNKNOWN] * len(jobs)
        self.next = 0
        self.winner = len(jobs)
        self.lock = threading.Lock()
        self.errors: list[BaseException] = []

    def work(self) -> None:
        """A worker: takes jobs until there are none that matter."""
        while True:
            with self.lock:
                k = self.next
                if k >= (self.winner if self.in_order else len(self.jobs)) or self.errors:
                    return
                self.next += 1
            try:
                self.finish(k, self.jobs[k].run())
            except BaseException as e:  # handed to the caller's thread
                self.errors.append(e)
                self.halt()

    def finish(self, k: int, answer: Answer) -> None:
        with self.lock:
            self.answers[k] = answer
            if not self.ends(answer) or k >= self.winner:
                return
            self.winner = k
        if self.in_order:
            for job in self.jobs[k + 1 :]:
                job.stop()
        else:
            self.halt()

    def halt(self) -> None:
        """Stop all."""
        with self.lock:
            self.next = len(self.jobs)
        for job in self.jobs:
            job.stop()


def race(jobs: Sequence[Job], threads: int, deadline: Deadline, ends: Callable[[Answer], bool]) -> list[Answer]:
    """Run jobs side by side; when this returns, none of them runs.

    Parameters
    ----------
    jobs : sequence of Job
    threads : int
    deadline : Deadline
        All stop when its clock is halted. Where the clock counts work, the jobs after the first that ends the race are
        treated as if they had never begun, and the work of the others is charged to it.
    ends : callable
        Does this answer end the race?

    Returns
    -------
    list of Answer
        One for each job.
    """
    reproducible = deadline.clock.reproducible
    state = _Race(jobs, ends, reproducible)
    workers = [threading.Thread(target=state.work, daemon=True) for _ in range(min(threads, len(jobs)))]
    for w in workers:
        w.start()
    try:
        for w in workers:
            while w.is_alive():
                w.join(POLL)
                if deadline.clock.halted or (not reproducible and deadline.passed):
                    state.halt()
    finally:
        state.halt()
        for w in workers:
            w.join()
    if state.errors:
        raise state.errors[0]
    if reproducible:
        state.answers[state.winner + 1 :] = [UNKNOWN] * (len(jobs) - state.winner - 1)
    deadline.clock.spend(sum(a.work for a in state.answers))
    return state.answers
