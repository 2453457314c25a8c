"""The CP-SAT model: one integer variable per block, one no-overlap per section.

A section is a maximal set of rectangles that live together. With time fixed, placing rectangles is placing intervals
of addresses, so each section is a one-dimensional `NoOverlap`. Deciding whether a plan fits in a given capacity, with
a fixed search that always takes the block that can go lowest, is far stronger than minimising (benchmarks/README.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from solvers.greedy import Features, order_of
from solvers.reduce import Task

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MEMBERS_LIMIT = 3_000_000
"""Above this many intervals in all sections together no model is built."""

FIXED_ORDERS = ("TWA", "TAW")


class Verdict(StrEnum):
    """What one call found."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """``bases`` in units, by block, if placed; ``lower_bound`` in bytes, 0 if none was proven."""

    verdict: Verdict
    bases: list[int] | None = None
    lower_bound: int = 0
    engine: str = "cp-sat"


UNKNOWN = Answer(Verdict.UNKNOWN)


def sections(task: Task) -> Iterator[dict[int, list[tuple[int, int]]]]:
    """Maximal sets of rectangles that live together: block index to address ranges, touching ranges joined."""
    starts: dict[int, list[tuple[int, int, int]]] = {}
    ends: dict[int, list[tuple[int, int, int]]] = {}
    for k, b in enumerate(task.blocks):
        for r in b.rects:
            starts.setdefault(r.start, []).append((k, r.low, r.high))
            ends.setdefault(r.end, []).append((k, r.low, r.high))
    live: set[tuple[int, int, int]] = set()
    for t in range(len(task.steps)):
        live.difference_update(ends.get(t, ()))
        live.update(starts.get(t, ()))
        if t + 1 == len(task.steps) or t + 1 in ends:
            section: dict[int, list[tuple[int, int]]] = {}
            for k, low, high in sorted(live):
                ranges = section.setdefault(k, [])
                if ranges and ranges[-1][1] == low:
                    ranges[-1] = (ranges[-1][0], high)
                else:
                    ranges.append((low, high))
            yield section


class Model:
    """The constraints of one task under a capacity.

    Parameters
    ----------
    task : Task
    capacity : int
        Bytes; every block ends within it.
    """

    def __init__(self, task: Task, capacity: int) -> None:
        from ortools.sat.python import cp_model

        self.task = task
        self.model = cp_model.CpModel()
        self.possible = True
        self.bases = [self._base(k, capacity) for k in range(len(task.blocks))]
        if self.possible:
            self._no_overlap()

    def _base(self, k: int, capacity: int) -> cp_model.IntVar:
        """The base of block ``k`` in its own steps."""
        b = self.task.blocks[k]
        highest = self.task.highest_base(b, capacity) // b.step
        lowest = 0
        if b.base is not None:
            lowest = b.base // b.step
            highest = min(highest, lowest)
        self.possible &= lowest <= highest
        return self.model.new_int_var(lowest, max(lowest, highest), f"base{k}")

    def _no_overlap(self) -> None:
        made: dict[tuple[int, int, int], cp_model.IntervalVar] = {}
        for section in sections(self.task):
            if len(section) < 2:
                continue
            intervals = []
            for k, ranges in section.items():
                for low, high in ranges:
                    key = (k, low, high)
                    if key not in made:
                        start = self.bases[k] * self.task.blocks[k].step + low
                        made[key] = self.model.new_fixed_size_interval_var(start, high - low, f"r{k}@{low}")
                    intervals.append(made[key])
            self.model.add_no_overlap(intervals)

    def order(self, name: str) -> None:
        """Search by always placing the block that can go lowest; ties in the named order."""
        from ortools.sat.python import cp_model

        ranked = [self.bases[k] for k in order_of(Features(self.task), name)]
        self.model.add_decision_strategy(ranked, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)

    def minimise_peak(self, lower_bound: int, upper_bound: int) -> cp_model.IntVar:
        """Add the peak (bytes) as variable and objective."""
        peak = self.model.new_int_var(lower_bound, upper_bound, "peak")
        for b, x in zip(self.task.blocks, self.bases, strict=True):
            self.model.add(peak >= x * (b.step * self.task.unit) + b.top)
        self.model.minimize(peak)
        return peak

    def hint(self, bases: Sequence[int]) -> None:
        """Suggest a complete placement (bases in units)."""
        for b, x, value in zip(self.task.blocks, self.bases, bases, strict=True):
            self.model.add_hint(x, value // b.step)

    def bases_from(self, solver: cp_model.CpSolver) -> list[int]:
        """The placement found, bases in units."""
        return [solver.value(x) * b.step for b, x in zip(self.task.blocks, self.bases, strict=True)]


def is_too_large(task: Task) -> bool:
    """Would the model have more intervals than `MEMBERS_LIMIT`?"""
    return sum(len(b.rects) for b in task.blocks) > 20_000 or (
        sum(sum(map(len, s.values())) for s in sections(task)) > MEMBERS_LIMIT
    )


def decide(task: Task, capacity: int, time_limit: float, workers: int, seed: int) -> Answer:
    """Is there a plan within ``capacity``? Fixed-order searches, side by side if there are workers for it.

    Parameters
    ----------
    task : Task
    capacity : int
        Bytes.
    time_limit : float
        Seconds.
    workers : int
        At most this many searches at a time.
    seed : int

    Returns
    -------
    Answer
        The first that is not unknown.
    """
    searches = [_FixedSearch(task, capacity, name, seed) for name in FIXED_ORDERS]
    if workers < len(searches):
        for search in searches:
            search.run(time_limit / len(searches))
            if search.answer.verdict is not Verdict.UNKNOWN:
                return search.answer
        return UNKNOWN
    done = threading.Event()
    threads = [threading.Thread(target=s.run, args=(time_limit, done.set), daemon=True) for s in searches]
    for t in threads:
        t.start()
    try:
        while any(t.is_alive() for t in threads) and all(s.answer.verdict is Verdict.UNKNOWN for s in searches):
            done.wait(0.05)
            done.clear()
    finally:
        for s in searches:
            s.stop()
        for t in threads:
            t.join()
    return next((s.answer for s in searches if s.answer.verdict is not Verdict.UNKNOWN), UNKNOWN)


class _FixedSearch:
    """One worker, one order, one capacity."""

    def __init__(self, task: Task, capacity: int, order: str, seed: int) -> None:
        from ortools.sat.python import cp_model

        self.order = order
        self.model = Model(task, capacity)
        self.model.order(order)
        self.answer = UNKNOWN
        self.stopped = False
        self.solver = cp_model.CpSolver()
        p = self.solver.parameters
        p.num_workers = 1
        p.random_seed = seed
        p.linearization_level = 0
        p.search_branching = cp_model.FIXED_SEARCH

    def run(self, time_limit: float, done: Callable[[], None] = lambda: None) -> None:
        """Search; fills `answer`."""
        engine = f"cp-sat {self.order}"
        try:
            if not self.model.possible:
                self.answer = Answer(Verdict.INFEASIBLE, engine=engine)
            elif time_limit > 0 and not self.stopped:
                self.solver.parameters.max_time_in_seconds = time_limit
                self.answer = _answer(self.model, self.solver, engine)
        finally:
            done()

    def stop(self) -> None:
        """Ask the search to end soon."""
        self.stopped = True
        self.solver.stop_search()


def _answer(model: Model, solver: cp_model.CpSolver, engine: str) -> Answer:
    from ortools.sat.python import cp_model

    status = solver.solve(model.model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(Verdict.PLACED, model.bases_from(solver), engine=engine)
    if status == cp_model.INFEASIBLE:
        return Answer(Verdict.INFEASIBLE, engine=engine)
    return UNKNOWN


def minimise(task: Task, hint: Sequence[int], lower_bound: int, time_limit: float, workers: int, seed: int) -> Answer:
    """Improve on a placement with CP-SAT's own portfolio of searches.

    Parameters
    ----------
    task : Task
    hint : sequence of int
        A placement, bases in units.
    lower_bound : int
        Proven floor of the peak, bytes.
    time_limit : float
        Seconds.
    workers, seed : int

    Returns
    -------
    Answer
        Placed, with the bound that CP-SAT proved; or unknown.
    """
    from ortools.sat.python import cp_model

    if time_limit <= 0:
        return UNKNOWN
    incumbent = task.peak(hint)
    model = Model(task, incumbent)
    peak = model.minimise_peak(min(lower_bound, incumbent), incumbent)
    model.hint(hint)
    model.model.add_hint(peak, incumbent)
    solver = cp_model.CpSolver()
    p = solver.parameters
    p.num_workers = workers
    p.random_seed = seed
    p.linearization_level = 0
    p.max_time_in_seconds = time_limit
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return UNKNOWN
    bound = int(solver.best_objective_bound)
    return Answer(Verdict.PLACED, model.bases_from(solver), bound, "cp-sat minimise")
