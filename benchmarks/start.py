"""How long commands take on next to nothing: what they import, mostly.

    python -m benchmarks.start MODEL.pte [--runs N]

Medians of runs in turn, and their ratio to ``arena --version``. Any small program will do; ``arena demo --out DIR``
writes some.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m benchmarks.start", description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL.pte")
    parser.add_argument("--runs", type=int, default=9, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.csv"
        trace.write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
        commands = {
            "--version": ["--version"],
            "plan of two buffers": ["plan", str(trace), "--quiet"],
            "show of a .pte": ["show", args.model],
            "replan of a .pte": ["replan", args.model, "-o", str(Path(folder) / "out.pte"), "--quiet"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(args.runs):
            for name, arguments in commands.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, "-m", "planner.cli", *arguments], capture_output=True, check=True)
                times[name].append(time.perf_counter() - start)
    table = Table("command", "seconds", "of --version")
    least = statistics.median(times["--version"])
    for name, some in times.items():
        table.add_row(name, f"{statistics.median(some):.3f}", f"{statistics.median(some) / least:.1f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
