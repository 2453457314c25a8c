"""ExecuTorch's own greedy planner, restated on buffers, so that it can be compared without torch.

After ``executorch.exir.memory_planning.greedy`` (1.5): sizes are padded to the alignment; largest first, the later of
equals before the earlier; a buffer goes to the first bucket that it shares no step with, else on top of its
contemporaries in the first bucket that has room, else into a new bucket of its size; buckets are stacked.
"""

from __future__ import annotations

from solvers.problem import Problem


def stock_greedy(problem: Problem) -> dict[str, int]:
    """Offsets (bytes) as stock greedy gives them.

    Colocations, pins and the capacity are not known to it: the plan of a problem that has them may break them. The
    largest alignment of the problem serves all buffers.
    """
    alignment = max((b.alignment for b in problem.buffers), default=1)
    padded = [-(-b.size // alignment) * alignment for b in problem.buffers]
    order = sorted(range(len(padded)), key=lambda k: padded[k])[::-1]
    buckets: list[list[tuple[int, int, int]]] = []  # (start, end, top) of what is in it
    sizes: list[int] = []
    placed: list[tuple[int, int, int]] = []  # (buffer, bucket, offset in the bucket)
    for k in order:
        b = problem.buffers[k]
        tops = [max((top for s, e, top in bucket if s < b.end and b.start < e), default=-1) for bucket in buckets]
        home = next((j for j, top in enumerate(tops) if top < 0), None)
        if home is None:
            home = next((j for j, top in enumerate(tops) if 0 < top <= sizes[j] - padded[k]), None)
        if home is None:
            home = len(buckets)
            buckets.append([])
            sizes.append(padded[k])
            tops.append(-1)
        at = max(0, tops[home])
        buckets[home].append((b.start, b.end, at + padded[k]))
        placed.append((k, home, at))
    floors = [sum(sizes[:j]) for j in range(len(sizes))]
    return {problem.buffers[k].id: floors[home] + at for k, home, at in placed}
