"""Ours beside SuperMalloc (omnimalloc), on the same problems in the same run, in this process after imports.

Needs ``pip install -e '.[bench]'``. Two modes: problem files, or problems drawn anew from omnimalloc's generators:

    python -m benchmarks.peers FILE.csv ... --time-limit 30
    python -m benchmarks.peers --families 1000 --seeds 5 --time-limit 10
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator

from omnimalloc.allocators.supermalloc import SupermallocAllocator
from omnimalloc.benchmark import sources
from omnimalloc.primitives.allocation import Allocation
from rich.console import Console
from rich.table import Table

from planner.io import read_problem
from solvers.buffers import Buffer
from solvers.problem import Problem
from solvers.run import Options
from solvers.search import solve

FAMILIES = {
    "random": sources.RandomSource,
    "uniform": sources.UniformSource,
    "power2": sources.PowerOf2Source,
    "contention": sources.HighContentionSource,
    "sequential": sources.SequentialSource,
    "skewed": sources.SkewedSource,
    "tiling": sources.TilingSource,
    "pinwheel": sources.PinwheelSource,
}
"""omnimalloc's generators, but for those whose time is no line."""


def drawn(size: int, seeds: int) -> Iterator[Problem]:
    """Problems of every family, with seeds that no data set here has."""
    for name, source in FAMILIES.items():
        for seed in range(1000, 1000 + seeds):
            n = size // 4 * 4 + 1 if name == "pinwheel" else size
            made = source(num_allocations=n, seed=seed).get_allocations()
            yield Problem([Buffer(str(a.id), a.size, a.start, a.end) for a in made], name=f"{name}-{size}-seed{seed}")


def theirs(problem: Problem, limit: float, threads: int) -> tuple[int, bool, float]:
    """Peak (bytes), proven?, seconds of SuperMalloc."""
    some = tuple(Allocation(id=b.id, size=b.size, start=b.start, end=b.end) for b in problem.buffers)
    start = time.perf_counter()
    result = SupermallocAllocator(timeout=limit, num_threads=threads).solve(some)
    return result.peak, result.proved_optimal, time.perf_counter() - start


def main() -> int:
    """Run the comparison; 1 if ours is more than 1 % above theirs anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM.csv")
    parser.add_argument("--families", type=int, metavar="N", help="also draw problems of N buffers of every family")
    parser.add_argument("--seeds", type=int, default=5, metavar="K", help="problems of each family (default 5)")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="ours (default 2)")
    parser.add_argument("--threads", type=int, default=6, metavar="N", help="theirs (default 6)")
    parser.add_argument("--runs", type=int, default=1, metavar="K", help="solve each K times, quote the median time")
    args = parser.parse_args()
    problems = [read_problem(p) for p in args.problems]
    problems += drawn(args.families, args.seeds) if args.families else []
    solve(Problem([Buffer("a", 1, 0, 2), Buffer("b", 2, 1, 3)]))  # imports
    table = Table("problem", "bound", "ours", "proven", "seconds", "supermalloc", "proven", "seconds", "ours / theirs")
    lost, seconds = [], ([], [])
    for problem in problems:
        mine, other = [], []
        for _ in range(args.runs):
            start = time.perf_counter()
            result = solve(problem, "auto", Options(args.time_limit, args.workers))
            mine.append((result.peak, result.status == "optimal", time.perf_counter() - start))
            other.append(theirs(problem, args.time_limit, args.threads))
        times = [statistics.median(row[2] for row in rows) for rows in (mine, other)]
        for total, t in zip(seconds, times, strict=True):
            total.append(t)
        (a, proved_a, _), (b, proved_b, _) = mine[0], other[0]
        lost += [problem.name] if a > 1.01 * b else []
        row = (result.lower_bound, a, proved_a, f"{times[0]:.3f}", b, proved_b, f"{times[1]:.3f}", f"{a / b:.4f}")
        table.add_row(problem.name, *(str(x) for x in row))
    Console(width=140).print(table)
    ours, their = sum(seconds[0]), sum(seconds[1])
    print(f"seconds, all: ours {ours:.3f}, SuperMalloc {their:.3f}, ratio {ours / their:.3f}")
    print(f"more than 1 % above SuperMalloc: {', '.join(lost) or 'none'}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
