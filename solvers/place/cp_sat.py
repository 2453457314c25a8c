"""The CP-SAT model: one integer variable per block, one no-overlap per section.

A section is a maximal set of rectangles that live together. With time fixed, placing rectangles is placing intervals
of addresses, so each section is a one-dimensional `NoOverlap`. Deciding whether a plan fits in a given capacity, with
a fixed search that always takes the block that can go lowest, is far stronger than minimising (benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.place.orders import Features, order_of
from solvers.place.race import UNKNOWN, Answer, Job, Verdict, race
from solvers.problem.reduce import Column, Task

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

BLOCKS_LIMIT = 20_000
MEMBERS_LIMIT = 3_000_000
STEPS_LIMIT = 10_000_000
"""Above this many rectangles, intervals in all sections together, or steps of all rectangles together, no model is
built."""

SECONDS_PER_MEMBER = 5e-6
"""What building a model took where it was slowest: if that is more than the time left, it is not begun."""

EXACT_DOUBLES = 2**53
"""CP-SAT hands out its bound as a double: above this it is no proof."""

FIXED_ORDERS = ("TWA", "TAW")


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

        order = order_of(Features(self.task), name).tolist()
        ranked = [copy.get_int_var_from_proto_index(self.bases[k].index) for k in order]
        copy.add_decision_strategy(ranked, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
        return copy

    def minimising(self, hint: Sequence[int] | Column, lower_bound: int) -> cp_model.CpModel | None:
        """A copy with the peak (bytes) as variable and objective, and a placement (bases in units) as complete hint."""
        incumbent = self.task.peak(hint)
        copy = self.within(incumbent)
        if copy is None:
            return None
        peak = copy.new_int_var(min(lower_bound, incumbent), incumbent, "peak")
        for b, x, value in zip(self.task.blocks, self.bases, hint, strict=True):
            base = copy.get_int_var_from_proto_index(x.index)
            copy.add(peak >= base * (b.step * self.task.unit) + b.top)
            copy.add_hint(base, int(value) // b.step)
        copy.add_hint(peak, incumbent)
        copy.minimize(peak)
        return copy

    def bases_from(self, solver: cp_model.CpSolver) -> Column:
        """The placement found, bases in units."""
        return np.array([solver.value(x) * b.step for b, x in zip(self.task.blocks, self.bases, strict=True)])


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
        self.size = 0

    def ready(self) -> bool:
        """Build the model unless it exists; False if it is too large for the memory or the time that is left."""
        if self.model is None:
            rects = self.task.rects
            if len(rects.block) > BLOCKS_LIMIT or int((rects.end - rects.start).sum()) > STEPS_LIMIT:
                return False
            size = self.size = self.size or members(self.task)
            if size > MEMBERS_LIMIT or size * SECONDS_PER_MEMBER > self.deadline.left:
                return False
            self.model = Model(self.task, self.capacity)
            self.deadline.clock.spend(size * SECONDS_PER_MEMBER)
        return not self.deadline.passed

    def fixed(self, capacity: int, order: str, seconds: float) -> Job:
        """A search for a plan within ``capacity`` bytes that always places the block that can go lowest."""
        assert self.model is not None
        return _FixedSearch(self, capacity, order, seconds)

    def decide(self, capacity: int, seconds: float) -> Answer:
        """Is there a plan within ``capacity`` bytes? Fixed-order searches, side by side if there are workers for it.

        Parameters
        ----------
        capacity : int
        seconds : float
            The deadline holds as well.

        Returns
        -------
        Answer
            The first that is not unknown.
        """
        if not self.ready():
            return UNKNOWN
        seconds = min(seconds, self.deadline.left)
        if self.workers < len(FIXED_ORDERS) and not self.deadline.clock.reproducible:
            seconds /= len(FIXED_ORDERS)
        jobs = [self.fixed(capacity, name, seconds) for name in FIXED_ORDERS]
        answers = race(jobs, self.workers, self.deadline, lambda a: a.verdict is not Verdict.UNKNOWN)
        return next((a for a in answers if a.verdict is not Verdict.UNKNOWN), UNKNOWN)

    def minimise(self, hint: Sequence[int] | Column, lower_bound: int, seconds: float) -> Answer:
        """Improve on a placement with CP-SAT's own portfolio of searches.

        Parameters
        ----------
        hint : sequence of int
            A placement, bases in units.
        lower_bound : int
            Proven floor of the peak, bytes.
        seconds : float
            The deadline holds as well.

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
        run = CpRun(self.deadline, self.workers, self.seed)
        run.solver.parameters.linearization_level = 0
        answer = _answer(self.model, copy, run, seconds, "cp-sat minimise")
        self.deadline.clock.spend(answer.work)
        if answer.verdict is not Verdict.PLACED or self.task.peak(hint) >= EXACT_DOUBLES:
            return answer
        return replace(answer, lower_bound=int(run.solver.best_objective_bound))


class _FixedSearch:
    """One worker, one order, one capacity."""

    def __init__(self, engine: Engine, capacity: int, order: str, seconds: float) -> None:
        from ortools.sat.python import cp_model

        self.engine = engine
        self.capacity = capacity
        self.order = order
        self.seconds = seconds
        self.cp = CpRun(engine.deadline, 1, engine.seed)
        self.cp.solver.parameters.linearization_level = 0
        self.cp.solver.parameters.search_branching = cp_model.FIXED_SEARCH

    def run(self) -> Answer:
        """Search."""
        model = self.engine.model
        assert model is not None
        name = f"cp-sat {self.order}"
        copy = model.within(self.capacity)
        if copy is None:
            return Answer(Verdict.INFEASIBLE, None, self.capacity + 1, name)
        answer = _answer(model, model.ordered(copy, self.order), self.cp, self.seconds, name)
        return replace(answer, lower_bound=self.capacity + 1) if answer.verdict is Verdict.INFEASIBLE else answer

    def stop(self) -> None:
        """Ask the search to end soon."""
        self.cp.stop()


def _answer(model: Model, copy: cp_model.CpModel, run: CpRun, seconds: float, engine: str) -> Answer:
    from ortools.sat.python import cp_model

    status = run.solve(copy, seconds)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(Verdict.PLACED, model.bases_from(run.solver), engine=engine, work=run.work)
    if status == cp_model.INFEASIBLE:
        return Answer(Verdict.INFEASIBLE, engine=engine, work=run.work)
    return Answer(Verdict.UNKNOWN, engine=engine, work=run.work)
