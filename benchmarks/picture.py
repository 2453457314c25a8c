"""The README's picture: greedy beside the optimum of one problem.

python -m benchmarks.picture ../shared/data/models/timm_res2net50.portable.json -o benchmarks/memory_map.svg
"""

from __future__ import annotations

import argparse

from planner.maps.memory_map import Panel
from planner.maps.render import render
from solvers.files.by_name import read_problem
from solvers.files.text import write_atomically
from solvers.place.stock import stock_greedy
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.search import solve


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("problem")
    parser.add_argument("-o", "--output", default="benchmarks/memory_map.svg")
    args = parser.parse_args()
    read = read_problem(args.problem)
    problem = Problem(read.buffers, name=read.name)  # tensors apart, as stock plans them
    greedy = Solution(stock_greedy(problem))
    best = solve(problem)
    assert best.solution is not None
    panels = [
        Panel("ExecuTorch's greedy", problem, greedy, best.lower_bound),
        Panel(f"arena plan, {best.status}", problem, best.solution, best.lower_bound),
    ]
    write_atomically(args.output, render(panels, ".svg", problem.name))


if __name__ == "__main__":
    main()
