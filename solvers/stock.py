"""ExecuTorch's own greedy planner, restated on buffers, so that it can be compared without torch.

After ``executorch.exir.memory_planning.greedy`` (1.5): sizes are padded to the alignment; largest first, the later of
equals before the earlier; a buffer goes to the first bucket that it shares no step with, else on top of its
contemporaries in the first bucket that has room, else into a new bucket of its size; buckets are stacked.
"""

from __future__ import annotations

import numpy as np

from solvers.buffers import LIMIT
from solvers.problem import Problem


def stock_applies(problem: Problem) -> bool:
    """Can stock greedy plan this at all: no required colocations, no pins, and an alignment that serves all buffers?"""
    largest = max((b.alignment for b in problem.buffers), default=1)
    return (
        not problem.required
        and all(b.offset is None and largest % b.alignment == 0 for b in problem.buffers)
        and sum(b.size + largest for b in problem.buffers) <= LIMIT
    )


def stock_greedy(problem: Problem) -> dict[str, int]:
    """Offsets (bytes) as stock greedy gives them.

    Colocations, pins and the capacity are not known to it: the plan of a problem that has them may break them. The
    largest alignment serves all buffers. See `stock_applies`.
    """
    alignment = max((b.alignment for b in problem.buffers), default=1)
    padded = [-(-b.size // alignment) * alignment for b in problem.buffers]
    order = sorted(range(len(padded)), key=lambda k: padded[k])[::-1]
    placed = np.zeros((4, len(order)), dtype=np.int64)  # start, end, top, bucket of what is placed
    sizes = np.zeros(len(order), dtype=np.int64)  # of the buckets
    offsets = {}
    buckets = 0
    for n, k in enumerate(order):
        b = problem.buffers[k]
        start, end, top, bucket = placed[:, :n]
        met = (start < b.end) & (b.start < end)
        tops = np.full(buckets + 1, -1, dtype=np.int64)  # the last stands for a new bucket
        np.maximum.at(tops, bucket[met], top[met])
        home = int(np.argmax(tops < 0))
        fits = (tops[:buckets] > 0) & (tops[:buckets] + padded[k] <= sizes[:buckets])
        if home == buckets and fits.any():
            home = int(np.argmax(fits))
        if home == buckets:
            sizes[home] = padded[k]
            buckets += 1
        at = max(0, int(tops[home]))
        placed[:, n] = (b.start, b.end, at + padded[k], home)
        offsets[b.id] = (home, at)
    floors = np.concatenate(([0], np.cumsum(sizes)))
    return {i: int(floors[home]) + at for i, (home, at) in offsets.items()}
