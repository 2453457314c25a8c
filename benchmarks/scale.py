"""Large problems: seconds to the first verified plan and to the end, overrun of the limit, memory.

    python -m benchmarks.scale [FILE.csv ...] --time-limit 1 10

Without files: 100 000 random buffers, each of which lives with about 80 others.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time

from rich.console import Console
from rich.table import Table

from solvers.files.by_name import read_problem
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem
from solvers.run import Options
from solvers.search import solve
from solvers.verifier import verify


def random_rows(n: int) -> list[tuple[str, int, int, int]]:
    """Rows of `Buffer`: starts uniform over ``n`` steps, lifetimes up to 80 steps, sizes up to 1 MiB."""
    draw = random.Random(1)
    starts = [draw.randrange(n) for _ in range(n)]
    return [(str(k), draw.randint(1, 1 << 20), s, s + draw.randint(1, 80)) for k, s in enumerate(starts)]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM.csv")
    parser.add_argument("--buffers", type=int, default=100_000, metavar="N")
    parser.add_argument("--time-limit", type=float, nargs="+", default=[0.001, 1.0, 10.0], metavar="S")
    args = parser.parse_args()
    heads = ("problem", "buffers", "build", "limit", "first plan", "all", "overrun", "verify", "status", "gap", "by")
    table = Table(*heads)
    for path in args.problems or [None]:
        rows = random_rows(args.buffers)
        start = time.perf_counter()
        problem = read_problem(path) if path else Problem([Buffer(*row) for row in rows], name="random")
        built = time.perf_counter() - start
        for limit in args.time_limit:
            start = time.perf_counter()
            result = solve(problem, "auto", Options(limit))
            taken = time.perf_counter() - start
            assert result.solution is not None
            start = time.perf_counter()
            verify(problem, result.solution)
            checked = time.perf_counter() - start
            seconds = (result.trace[0].time, taken, max(0.0, taken - limit), checked)
            first, whole, over, check = (f"{s:.3f}" for s in seconds)
            table.add_row(
                problem.name,
                str(len(problem.buffers)),
                f"{built:.3f}",
                f"{limit:g}",
                first,
                whole,
                over,
                check,
                str(result.status),
                f"{result.gap:.4%}",
                result.solver,
            )
    Console(width=160).print(table)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most; seconds in all columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
