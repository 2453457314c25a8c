"""Draw problems anew from omnimalloc's generators, and write them as CSV files for `arena bench`.

    python -m benchmarks.families FOLDER --buffers 1000 --seeds 5
    arena bench FOLDER --solvers supermalloc,auto --time-limit 3

Needs the extra ``bench``. The seeds are none that a data set here has.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from omnimalloc.benchmark import sources

from solvers.files.by_name import problem_to_csv, write_atomically
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem

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
    """Problems of every family."""
    for name, source in FAMILIES.items():
        for seed in range(1000, 1000 + seeds):
            n = size // 4 * 4 + 1 if name == "pinwheel" else size
            made = source(num_allocations=n, seed=seed).get_allocations()
            yield Problem([Buffer(str(a.id), a.size, a.start, a.end) for a in made], name=f"{name}-{size}-seed{seed}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m benchmarks.families", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--buffers", type=int, default=1000, metavar="N", help="of each problem (default 1000)")
    parser.add_argument("--seeds", type=int, default=5, metavar="K", help="problems of each family (default 5)")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for problem in drawn(args.buffers, args.seeds):
        write_atomically(str(args.folder / f"{problem.name}.csv"), problem_to_csv(problem))


if __name__ == "__main__":
    main()
