"""Eight stages, each a concat of 8 MB and a split: run time with stock's plan and with ours, in one process.

    python benchmarks/copies.py [--runs N]

The two programs run in turn; medians and their ratio are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from executorch.runtime import Runtime
from rich.console import Console
from rich.table import Table

from planner.executorch import arena_planning_pass
from planner.executorch.compare import facts_of, lower, same_bits, to_program

STAGES, BYTES = 8, 8 << 20


class Stages(torch.nn.Module):
    """Each stage computes two halves, concatenates them and splits the result."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(STAGES):
            a, b = torch.cat([a.neg(), b.abs()]).split(a.shape[0])
        return a + b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="of each program (default 15)")
    runs = parser.parse_args().runs
    rows = 8  # the exporter walks the rows of a tensor one by one
    inputs = [torch.randn(rows, BYTES // 8 // rows) for _ in range(2)]
    edge = lower(Stages(), inputs)
    programs = {"stock": to_program(edge), "arena": to_program(edge, arena_planning_pass())}
    buffers = {name: program.buffer for name, program in programs.items()}
    methods = {name: Runtime.get().load_program(b).load_method("forward") for name, b in buffers.items()}
    outputs = {name: [t.clone() for t in method.execute(inputs)] for name, method in methods.items()}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(runs):
        for name, method in methods.items():
            started = time.perf_counter()
            method.execute(inputs)
            seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(s) for name, s in seconds.items()}
    table = Table("plan", "arena bytes", "instructions", "bytes copied", "median ms", "of stock's")
    for name, program in programs.items():
        facts = facts_of(program)
        row = f"{1000 * medians[name]:.1f}", f"{medians[name] / medians['stock']:.2f}"
        table.add_row(name, f"{facts.arena:,}", str(facts.instructions), f"{facts.copied:,}", *row)
    Console().print(table)
    print(f"outputs equal bit for bit: {same_bits(outputs['stock'], outputs['arena'])}")


if __name__ == "__main__":
    main()
