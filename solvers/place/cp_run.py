"""Runs of CP-SAT that keep the deadline, count their work, and can be stopped."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from solvers.deadline import POLL, Deadline

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

DETERMINISTIC = 0.1
"""Of CP-SAT's deterministic time, in a work second: about what it counts in a second of a fixed search."""


class CpRun:
    """One CP-SAT solver.

    Parameters
    ----------
    deadline : Deadline
        Where its clock counts work, one worker searches and CP-SAT's deterministic time is the limit.
    workers, seed : int

    Attributes
    ----------
    work : float
        Work seconds of the last call.
    """

    def __init__(self, deadline: Deadline, workers: int, seed: int) -> None:
        from ortools.sat.python import cp_model

        self.deadline = deadline
        self.solver = cp_model.CpSolver()
        self.stopped = threading.Event()
        self.work = 0.0
        parameters = self.solver.parameters
        parameters.num_workers = 1 if deadline.clock.reproducible else workers
        parameters.random_seed = seed
        parameters.catch_sigint_signal = False

    def stop(self) -> None:
        """End soon."""
        self.stopped.set()

    def solve(self, model: cp_model.CpModel, seconds: float) -> cp_model.CpSolverStatus:
        """Solve within ``seconds`` and the deadline; the work is not yet charged to the clock."""
        from ortools.sat.python import cp_model

        if seconds <= 0 or self.stopped.is_set():
            return cp_model.UNKNOWN
        parameters = self.solver.parameters
        if self.deadline.clock.reproducible:
            parameters.max_deterministic_time = seconds * DETERMINISTIC
            parameters.max_time_in_seconds = self.deadline.wall_left
        else:
            parameters.max_time_in_seconds = min(seconds, self.deadline.left)
        out: list[cp_model.CpSolverStatus | BaseException] = []
        thread = threading.Thread(target=self._solve, args=(model, out), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL)
                if self.stopped.is_set() or self.deadline.clock.halted:
                    self.solver.stop_search()
        finally:
            while thread.is_alive():
                self.solver.stop_search()
                thread.join(POLL)
        if isinstance(out[0], BaseException):
            raise out[0]
        self.work = float(self.solver.response_proto.deterministic_time) / DETERMINISTIC
        return out[0]

    def _solve(self, model: cp_model.CpModel, out: list[cp_model.CpSolverStatus | BaseException]) -> None:
        try:
            out.append(self.solver.solve(model))
        except BaseException as e:  # handed to the caller's thread
            out.append(e)
