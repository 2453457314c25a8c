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
from solvers.problem import Problem
from solvers.result import Status
from solvers.run import Options
from solvers.search import SOLVERS, solve


def main() -> int:
    """Run the benchmark; 0 unless a file cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", metavar="PROBLEM")
    parser.add_argument("--solver", default="auto", choices=list(SOLVERS))
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S")
    parser.add_argument("--runs", type=int, default=1, metavar="K", help="solve each K times, quote the median time")
    parser.add_argument("--optional", action="store_true", help="read all colocations as optional")
    parser.add_argument("--against-none", action="store_true", help="also solve each without its colocations")
    parser.add_argument("--reproducible", action="store_true", help="work decides, not the clock")
    parser.add_argument("--drop", action="store_true", help="leave the colocations out")
    parser.add_argument("--workers", type=int, default=0, metavar="N")
    args = parser.parse_args()
    table = Table("problem", "buffers", "ties", "status", "copies", "peak", "lower bound", "gap", "solver", "seconds")
    counts: Counter[str] = Counter()
    times, unproven, copying, above = [], [], [], []
    options = Options(args.time_limit, args.workers, reproducible=args.reproducible)
    for path in track(args.problems, console=Console(stderr=True), disable=not sys.stderr.isatty()):
        try:
            problem = read_problem(path, args.optional)
        except FileError as error:
            print(error, file=sys.stderr)
            return 2
        if args.drop:
            problem = Problem(problem.buffers, capacity=problem.capacity, name=problem.name)
        results = [solve(problem, args.solver, options) for _ in range(args.runs)]
        best = results[0]
        seconds = statistics.median(r.wall_time for r in results)
        times.append(seconds)
        counts[best.status] += 1
        gap = "" if best.gap is None else f"{best.gap:.2%}"
        numbers = (str(best.peak), str(best.lower_bound), gap, best.solver, f"{seconds:.3f}")
        name = problem.name or path
        unproven += [name] if best.status is not Status.OPTIMAL else []
        copying += [name] if not best.copies_optimal else []
        if args.against_none:
            none = solve(Problem(problem.buffers, capacity=problem.capacity, name=name), args.solver, options)
            above += [name] if none.peak is not None and (best.peak is None or best.peak > none.peak) else []
        ties = f"{len(best.solution.active) if best.solution else 0}/{len(problem.colocations)}"
        least = "least" if best.copies_optimal else ""
        table.add_row(name, str(len(problem.buffers)), ties, str(best.status), least, *numbers)
    Console(width=150).print(table)
    print(f"not proven: {', '.join(unproven) or 'none'}; copies not proven least: {', '.join(copying) or 'none'}")
    if args.against_none:
        print(f"above the plan without colocations: {', '.join(above) or 'none'}")
    print(f"{dict(counts)}; median {statistics.median(times):.3f} s, most {max(times):.2f} s, all {sum(times):.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
