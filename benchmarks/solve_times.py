"""Solve problem files several times and print status, peak, bound, gap and the median time of each.

    python benchmarks/solve_times.py --time-limit 10 problems/*.json

Times are in-process, after imports; figures of two versions compare only within one run on one machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter

from rich.console import Console
from rich.progress import track
from rich.table import Table

from planner.io import FileError, read_problem
from solvers.run import Options
from solvers.search import SOLVERS, solve


def main() -> int:
    """Run the benchmark; 0 unless a file cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", metavar="PROBLEM")
    parser.add_argument("--solver", default="auto", choices=list(SOLVERS))
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S")
    parser.add_argument("--runs", type=int, default=1, metavar="K", help="solve each K times, quote the median time")
    args = parser.parse_args()
    table = Table("problem", "buffers", "status", "peak", "lower bound", "gap", "solver", "seconds")
    counts: Counter[str] = Counter()
    times = []
    options = Options(time_limit=args.time_limit)
    for path in track(args.problems, console=Console(stderr=True), disable=not sys.stderr.isatty()):
        try:
            problem = read_problem(path)
        except FileError as error:
            print(error, file=sys.stderr)
            return 2
        results = [solve(problem, args.solver, options) for _ in range(args.runs)]
        best = results[0]
        seconds = statistics.median(r.wall_time for r in results)
        times.append(seconds)
        counts[best.status] += 1
        gap = "" if best.gap is None else f"{best.gap:.2%}"
        numbers = (str(best.peak), str(best.lower_bound), gap, best.solver, f"{seconds:.3f}")
        table.add_row(problem.name or path, str(len(problem.buffers)), str(best.status), *numbers)
    Console(width=130).print(table)
    print(f"{dict(counts)}; median {statistics.median(times):.3f} s, most {max(times):.2f} s, all {sum(times):.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
