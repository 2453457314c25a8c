"""The native core; built from solvers/core where a compiler is there."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]

class Verdict(Enum):
    PLACED = 0
    INFEASIBLE = 1
    STOPPED = 2

class Control:
    """Stops a search from another thread, and tells how many nodes it has seen."""

    def cancel(self) -> None: ...
    @property
    def nodes(self) -> int: ...

class Outcome:
    """``bases`` in units, by block, if placed; ``work`` in steps of inner loops."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def bases(self) -> list[int]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def work(self) -> int: ...

def stock_greedy(sizes: list[int], starts: list[int], ends: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Bucket and place in it of each request, bytes, and the sizes of the buckets; in the order given."""

class Instance:
    """A task in flat arrays. Calls release the interpreter lock; ``order`` must hold every block once."""

    def __init__(
        self,
        block: Column,
        low: Column,
        high: Column,
        start: Column,
        end: Column,
        step: Column,
        pin: Column,
        top: Column,
        unit: int,
        steps: int,
    ) -> None: ...
    @property
    def pairs(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    def first_fit(self, order: Column) -> list[int]: ...
    def search(
        self, order: Column, capacity: int, nodes: int, work: int, seconds: float, control: Control
    ) -> Outcome: ...
    def swap_at_peak(
        self, order: Column, target: int, rounds: int, seed: int, seconds: float, control: Control
    ) -> Outcome: ...
