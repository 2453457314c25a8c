"""The CP-SAT model: one integer variable per block, one no-overlap per section.

A section is a maximal set of rectangles that live together. With time fixed, placing rectangles is placing intervals
of addresses, so each section is a one-dimensional `NoOverlap`. Deciding whether a plan fits in a given capacity, with
a fixed search that always takes the block that can go lowest, is far stronger than minimising (benchmarks/README.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from solvers.deadline import Deadline
from solvers.greedy import Features, order_of
from solvers.reduce import Task

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

BLOCKS_LIMIT = 20_000
MEMBERS_LIMIT = 3_000_000
"""Above this many rectangles, or intervals in all sections together, no model is built."""

SECONDS_PER_MEMBER = 5e-6
"""What building a model took where it was slowest: if that is more than the time left, it is not begun."""

EXACT_DOUBLES = 2**53
"""CP-SAT hands out its bound as a double: above this it is no proof."""

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
    """The constraints of one task; built once, then copied for every call.

    Parameters
    ----------
    task : Task
    capacity : int
        Bytes; the largest that will be asked for.
    """

    def __init__(self, task: Task, capacity: int) -> None:
        from ortools.sat.python import cp_model

        self.task = task
        self.model = cp_model.CpModel()
        self.bases = [self._base(k, capacity) for k in range(len(task.blocks))]
        self._no_overlap()

    def _base(self, k: int, capacity: int) -> cp_model.IntVar:
        """The base of block ``k`` in its own steps."""
        low, high = self._range(k, capacity)
        return self.model.new_int_var(low, max(low, high), f"base{k}")

    def _range(self, k: int, capacity: int) -> tuple[int, int]:
        b = self.task.blocks[k]
        highest = self.task.highest_base(b, capacity) // b.step
        if b.base is None:
            return 0, highest
        return b.base // b.step, min(highest, b.base // b.step)

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

    def within(self, capacity: int) -> cp_model.CpModel | None:
        """A copy in which every block ends within ``capacity`` bytes; None if one cannot."""
        copy = self.model.clone()
        for k, x in enumerate(self.bases):
            low, high = self._range(k, capacity)
            if low > high:
                return None
            domain = copy.proto.variables[x.index].domain
            domain.clear()
            domain.extend([low, high])
        return copy

    def ordered(self, copy: cp_model.CpModel, name: str) -> cp_model.CpModel:
        """Let ``copy`` be searched by always placing the block that can go lowest; ties in the named order."""
        from ortools.sat.python import cp_model

        ranked = [copy.get_int_var_from_proto_index(self.bases[k].index) for k in order_of(Features(self.task), name)]
        copy.add_decision_strategy(ranked, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
        return copy

    def minimising(self, hint: Sequence[int], lower_bound: int) -> cp_model.CpModel | None:
        """A copy with the peak (bytes) as variable and objective, and a placement (bases in units) as complete hint."""
        incumbent = self.task.peak(hint)
        copy = self.within(incumbent)
        if copy is None:
            return None
        peak = copy.new_int_var(min(lower_bound, incumbent), incumbent, "peak")
        for b, x, value in zip(self.task.blocks, self.bases, hint, strict=True):
            base = copy.get_int_var_from_proto_index(x.index)
            copy.add(peak >= base * (b.step * self.task.unit) + b.top)
            copy.add_hint(base, value // b.step)
        copy.add_hint(peak, incumbent)
        copy.minimize(peak)
        return copy

    def bases_from(self, solver: cp_model.CpSolver) -> list[int]:
        """The placement found, bases in units."""
        return [solver.value(x) * b.step for b, x in zip(self.task.blocks, self.bases, strict=True)]


def members(task: Task) -> int:
    """Intervals in all sections together: the size of the model."""
    return sum(sum(map(len, s.values())) for s in sections(task))


class Engine:
    """CP-SAT on one task, under one deadline.

    Parameters
    ----------
    task : Task
    capacity : int
        Bytes; no call may ask for more.
    deadline : Deadline
    workers, seed : int
    """

    def __init__(self, task: Task, capacity: int, deadline: Deadline, workers: int, seed: int) -> None:
        self.task = task
        self.capacity = capacity
        self.deadline = deadline
        self.workers = workers
        self.seed = seed
        self.model: Model | None = None

    def ready(self) -> bool:
        """Build the model unless it exists; False if it is too large for the memory or the time that is left."""
        if self.model is None:
            if sum(len(b.rects) for b in self.task.blocks) > BLOCKS_LIMIT:
                return False
            size = members(self.task)
            if size > MEMBERS_LIMIT or size * SECONDS_PER_MEMBER > self.deadline.left:
                return False
            self.model = Model(self.task, self.capacity)
        return not self.deadline.passed

    def decide(self, capacity: int, time_limit: float) -> Answer:
        """Is there a plan within ``capacity`` bytes? Fixed-order searches, side by side if there are workers for it.

        Parameters
        ----------
        capacity : int
        time_limit : float
            Seconds; the deadline holds as well.

        Returns
        -------
        Answer
            The first that is not unknown.
        """
        if not self.ready():
            return UNKNOWN
        assert self.model is not None
        searches = []
        for name in FIXED_ORDERS:
            copy = self.model.within(capacity)
            if copy is None:
                return Answer(Verdict.INFEASIBLE, engine="cp-sat")
            searches.append(_FixedSearch(self.model, self.model.ordered(copy, name), name, self.seed))
        time_limit = min(time_limit, self.deadline.left)
        if self.workers < len(searches):
            for search in searches:
                search.run(time_limit / len(searches))
                if search.answer.verdict is not Verdict.UNKNOWN:
                    return search.answer
            return UNKNOWN
        return _race(searches, time_limit)

    def minimise(self, hint: Sequence[int], lower_bound: int, time_limit: float) -> Answer:
        """Improve on a placement with CP-SAT's own portfolio of searches.

        Parameters
        ----------
        hint : sequence of int
            A placement, bases in units.
        lower_bound : int
            Proven floor of the peak, bytes.
        time_limit : float
            Seconds; the deadline holds as well.

        Returns
        -------
        Answer
            Placed, with the bound that CP-SAT proved; or unknown.
        """
        if not self.ready():
            return UNKNOWN
        assert self.model is not None
        copy = self.model.minimising(hint, lower_bound)
        if copy is None:
            return UNKNOWN
        solver = _solver(self.workers, self.seed)
        answer = _solve(self.model, copy, solver, min(time_limit, self.deadline.left), "cp-sat minimise")
        if answer.verdict is not Verdict.PLACED or self.task.peak(hint) >= EXACT_DOUBLES:
            return answer
        return replace(answer, lower_bound=int(solver.best_objective_bound))


def _race(searches: Sequence[_FixedSearch], time_limit: float) -> Answer:
    """Run all side by side; the first answer stops the others, and none outlives the call."""
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

    def __init__(self, model: Model, copy: cp_model.CpModel, order: str, seed: int) -> None:
        from ortools.sat.python import cp_model

        self.model = model
        self.copy = copy
        self.engine = f"cp-sat {order}"
        self.answer = UNKNOWN
        self.stopped = False
        self.solver = _solver(1, seed)
        self.solver.parameters.search_branching = cp_model.FIXED_SEARCH

    def run(self, time_limit: float, done: Callable[[], None] = lambda: None) -> None:
        """Search; fills `answer`."""
        try:
            if not self.stopped:
                self.answer = _solve(self.model, self.copy, self.solver, time_limit, self.engine)
        finally:
            done()

    def stop(self) -> None:
        """Ask the search to end soon."""
        self.stopped = True
        self.solver.stop_search()


def _solver(workers: int, seed: int) -> cp_model.CpSolver:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.linearization_level = 0
    return solver


def _solve(model: Model, copy: cp_model.CpModel, solver: cp_model.CpSolver, time_limit: float, engine: str) -> Answer:
    from ortools.sat.python import cp_model

    if time_limit <= 0:
        return UNKNOWN
    solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(copy)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(Verdict.PLACED, model.bases_from(solver), engine=engine)
    return Answer(Verdict.INFEASIBLE, engine=engine) if status == cp_model.INFEASIBLE else UNKNOWN
