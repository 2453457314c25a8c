"""ExecuTorch's own greedy and naive planners, restated on buffers, so that they can be compared without torch.

After ``executorch.exir.memory_planning.greedy`` (1.5): sizes are padded to the alignment; largest first, the later of
equals before the earlier; a buffer goes to the first bucket that it shares no step with, else on top of its
contemporaries in the first bucket that has room, else into a new bucket of its size; buckets are stacked.
"""

from __future__ import annotations

import itertools

import numpy as np

from solvers.core import core
from solvers.problem.buffers import LIMIT
from solvers.problem.problem import Problem


def stock_applies(problem: Problem) -> bool:
    """Can stock greedy plan this at all: no required colocations, no pins, and an alignment that serves all buffers?"""
    largest = max((b.alignment for b in problem.buffers), default=1)
    return (
        not problem.required
        and all(b.offset is None and largest % b.alignment == 0 for b in problem.buffers)
        and sum(b.size + largest for b in problem.buffers) <= LIMIT
    )


def stock_seconds(problem: Problem) -> float:
    """About how long `stock_greedy` takes: it looks at every pair of buffers that live together."""
    n = len(problem.buffers)
    if core is None:
        return 1e-9 * n * n + 1e-5 * n
    starts = np.sort([b.start for b in problem.buffers])
    ends = np.sort([b.end for b in problem.buffers])
    pairs = int(np.searchsorted(starts, ends).sum()) - n * (n + 1) // 2
    return 1e-8 * pairs + 4e-6 * n


def stock_greedy(problem: Problem) -> dict[str, int]:
    """Offsets (bytes) as stock greedy gives them.

    Colocations, pins and the capacity are not known to it: the plan of a problem that has them may break them. The
    largest alignment serves all buffers. See `stock_applies`.
    """
    alignment = max((b.alignment for b in problem.buffers), default=1)
    padded = [-(-b.size // alignment) * alignment for b in problem.buffers]
    order = sorted(range(len(padded)), key=lambda k: padded[k])[::-1]
    rows = [problem.buffers[k] for k in order]
    pack = core.stock_greedy if core is not None else _pack
    homes, sizes = pack([padded[k] for k in order], [b.start for b in rows], [b.end for b in rows])
    floors = [0, *itertools.accumulate(sizes)]
    return {b.id: floors[home] + at for b, (home, at) in zip(rows, homes, strict=True)}


def stock_naive(problem: Problem) -> dict[str, int]:
    """Offsets (bytes) as stock's naive planner gives them: one buffer after the other, padded; nothing is reused."""
    alignment = max((b.alignment for b in problem.buffers), default=1)
    offsets, at = {}, 0
    for b in problem.buffers:
        offsets[b.id] = at
        at += -(-b.size // alignment) * alignment
    return offsets


def _pack(padded: list[int], starts: list[int], ends: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Bucket and place in it of each buffer, bytes, and the sizes of the buckets: the way without the native core."""
    placed = np.zeros((4, len(padded)), dtype=np.int64)  # start, end, top, bucket of what is placed
    sizes = np.zeros(len(padded), dtype=np.int64)  # of the buckets
    homes = []
    buckets = 0
    for n, size in enumerate(padded):
        start, end, top, bucket = placed[:, :n]
        met = (start < ends[n]) & (starts[n] < end)
        tops = np.full(buckets + 1, -1, dtype=np.int64)  # the last stands for a new bucket
        np.maximum.at(tops, bucket[met], top[met])
        home = int(np.argmax(tops < 0))
        fits = (tops[:buckets] > 0) & (tops[:buckets] + size <= sizes[:buckets])
        if home == buckets and fits.any():
            home = int(np.argmax(fits))
        if home == buckets:
            sizes[home] = size
            buckets += 1
        at = max(0, int(tops[home]))
        placed[:, n] = (starts[n], ends[n], at + size, home)
        homes.append((home, at))
    return homes, [int(s) for s in sizes[:buckets]]
