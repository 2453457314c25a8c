"""Searches of the native core as jobs: what each tries is told by its number alone."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from solvers.core import core
from solvers.deadline import Deadline
from solvers.place.orders import OPENING, Features, drawn_order
from solvers.place.race import Answer, Verdict
from solvers.problem.reduce import Column, Task

if TYPE_CHECKING:
    from solvers.core._core import Instance, Outcome

WORK_PER_SECOND = 300e6
"""Steps of the search's inner loops in a work second: half of what was measured, so that a slower machine keeps up."""

ORDER_SECONDS = 1e-6
"""Work seconds of drawing an order, by block."""

FIT_SECONDS = 5e-6
"""Work seconds of one block in one first-fit."""

SWAPS = 20
"""Swaps at the bottleneck in one probe."""

OPENING_PROBES, AT_THE_BOUND = 30, 400
"""So many probes ask for the bound, which is the optimum more often than not; then, for a while, every fourth does."""

PAIRS_LIMIT, SPANS_LIMIT = 12_000_000, 40_000_000
"""Of more ordered pairs of blocks that live together, or more steps of all blocks together, no search is made: its
lists would take more than a gigabyte."""


@dataclass(frozen=True)
class Field:
    """What all probes of one task share: the task, the clock, the seed."""

    task: Task
    deadline: Deadline
    seed: int

    @property
    def instance(self) -> Instance:
        """The native core's view of the task."""
        assert self.task.instance is not None
        return self.task.instance

    @cached_property
    def features(self) -> Features:
        """What orders are made of."""
        return Features(self.task)

    @cached_property
    def searchable(self) -> bool:
        """Is a depth-first search within reach?"""
        return self.instance.pairs <= PAIRS_LIMIT and int(self.features.width.sum()) <= SPANS_LIMIT

    @cached_property
    def exact(self) -> bool:
        """Does a search that ends without a plan prove that there is none?"""
        return self.searchable and self.instance.exact

    def order(self, number: int) -> tuple[str, Column]:
        """The order of a probe."""
        return drawn_order(self.features, number, self.seed)


class Probe(ABC):
    """One call of the native core; ``run`` may be stopped from another thread."""

    engine = ""

    def __init__(self, field: Field, number: int, capacity: int) -> None:
        self.field = field
        self.number = number
        self.capacity = capacity
        self.control = core.Control()
        self.stopped = False

    def stop(self) -> None:
        """End soon."""
        self.stopped = True
        self.control.cancel()

    def run(self) -> Answer:
        """Do it."""
        if self.stopped or self.field.deadline.clock.halted:
            return Answer(Verdict.UNKNOWN, engine=self.engine)
        name, order = self.field.order(self.number)
        outcome, work = self._call(order)
        engine = f"{self.engine} {name}"
        if outcome.verdict == core.Verdict.INFEASIBLE:
            return Answer(Verdict.INFEASIBLE, None, self.capacity + 1, engine, work)
        if outcome.verdict == core.Verdict.PLACED:
            return Answer(Verdict.PLACED, np.array(outcome.bases, dtype=np.int64), 0, engine, work)
        return Answer(Verdict.UNKNOWN, engine=engine, work=work)

    @abstractmethod
    def _call(self, order: Column) -> tuple[Outcome, float]:
        """What came out, and the work seconds it took."""


class TreeSearch(Probe):
    """The depth-first search at one capacity (bytes), up to so many nodes."""

    engine = "search"

    def __init__(self, field: Field, number: int, capacity: int, nodes: int) -> None:
        super().__init__(field, number, capacity)
        self.nodes = nodes
        self.work = int(min(field.deadline.left, 1e6) * WORK_PER_SECOND)

    def _call(self, order: Column) -> tuple[Outcome, float]:
        left = self.field.deadline.wall_left
        outcome = self.field.instance.search(order, self.capacity, self.nodes, self.work, left, self.control)
        return outcome, outcome.work / WORK_PER_SECOND + 1e-3 + len(self.field.task) * ORDER_SECONDS


class Swaps(Probe):
    """First-fit, then so many swaps at the bottleneck, until the peak is within the capacity (bytes)."""

    engine = "first-fit with swaps"

    def __init__(self, field: Field, number: int, capacity: int, rounds: int) -> None:
        super().__init__(field, number, capacity)
        self.rounds = rounds

    def _call(self, order: Column) -> tuple[Outcome, float]:
        left = self.field.deadline.wall_left
        rounds = self.rounds
        outcome = self.field.instance.swap_at_peak(order, self.capacity, rounds, self.number, left, self.control)
        return outcome, (1 + outcome.nodes) * len(self.field.task) * FIT_SECONDS


def luby(n: int) -> int:
    """1, 1, 2, 1, 1, 2, 4, ...: limits of restarts (Luby, Sinclair, Zuckerman 1993); ``n`` from 1."""
    power = n.bit_length()
    while n != (1 << power) - 1:
        n -= (1 << (power - 1)) - 1
        power = n.bit_length()
    return 1 << (power - 1)


def probes(field: Field, numbers: range, low: int, peak: int, capacity: int | None) -> list[Probe]:
    """A round of the race below ``peak``, towards ``low`` (bytes).

    Feasible capacities are scattered, so a search asks for the target, for less than the peak, or for anything
    between; ``capacity`` is asked for as well, where the problem has one and it is not yet met. Limits are those of
    restarts; every sixteenth probe takes an order of the opening up again, with a limit that grows by leaps, and later
    every 128th.
    """
    out: list[Probe] = []
    base = 300 + 2 * len(field.task)
    for n in numbers:
        if not field.searchable or (n % 16 == 15 and n >= OPENING_PROBES):
            out.append(Swaps(field, n, low, SWAPS if n % 16 == 15 else 0))
        elif n % 16 == 0 and 0 < n <= 48 * len(OPENING):
            turn, place = divmod(n // 16 - 1, len(OPENING))
            out.append(TreeSearch(field, place, low, base * 4 ** (turn + 1)))
        elif n % 128 == 0 and n:
            out.append(TreeSearch(field, n // 128 % len(OPENING), low, base * 256))
        else:
            asked = _capacity(random.Random(f"{field.seed}/{n}/capacity"), n, low, peak, capacity)
            nodes = base if asked == low else base + 2 * len(field.task)
            out.append(TreeSearch(field, n, asked, nodes * luby(n // 64 + 1)))
    return out


def _capacity(draw: random.Random, n: int, low: int, peak: int, capacity: int | None) -> int:
    if capacity is not None and low < capacity < peak and n % 8 == 2:
        return capacity
    if n < OPENING_PROBES or (n % 4 == 0 and n < AT_THE_BOUND):
        return low
    if n % 2:
        return peak - 1
    return min(peak - 1, low + int((peak - low) * draw.random()))
