"""Stock's plan against ours on the runtime: latency, the copies that vanished, memory.

    python -m benchmarks.runtime [NAME.VARIANT ...] [--runs N] [--rows FILE.jsonl]

For each network of the corpus, in a process of its own: both programs are run in turn on the same inputs, outputs are
compared bit for bit, and medians are taken. ETDump times the copying ops of each. The memory of a program is the peak
of a process that loads and runs it once, less what that process needed before. One row per network goes to
``benchmarks/results/runtime.jsonl``; a network that is measured again replaces its row.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import by_hand
from benchmarks.corpus.command import ENTRIES, facts_by_name
from benchmarks.corpus.entry import Variant
from solvers.files.by_name import write_atomically

RUNNABLE = ENTRIES | {e.name: e for e in by_hand.TOYS}

ROWS = Path(__file__).parent / "results" / "runtime.jsonl"
NETWORKS = (
    "squeezenet_v1_1.xnnpack-no-concat",
    "densenet121.xnnpack-no-concat",
    "vovnet39.xnnpack-no-concat",
    "yolov8n_like.xnnpack-no-concat",
    "unet.xnnpack-no-concat",
    "basicunet_2d.xnnpack-no-concat",
    "hrnet_w18_small_v1.xnnpack-no-concat",
    "shufflenetv2_w1.xnnpack-no-concat",
    "ghostnet.xnnpack",
    "mlperf_resnet8.portable",
    "mlperf_ds_cnn.portable",
    "gpt2_past_step.xnnpack",
    "llama_step.xnnpack",
    "concat_split_stages.portable",
    "bigru.portable",
)
"""With XNNPACK where convolutions would take all the time."""


def main() -> int:
    """Run the command; 1 if outputs differ."""
    parser = argparse.ArgumentParser("python -m benchmarks.runtime", description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NAME.VARIANT")
    parser.add_argument("--runs", type=int, default=30, metavar="N", help="of each program (default 30)")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    args = parser.parse_args()
    for name in args.networks:
        model, _, variant = name.rpartition(".")
        if model not in RUNNABLE or variant not in RUNNABLE[model].variants:
            parser.error(f"{name!r} is no network of the corpus in one of its variants")
    rows = facts_by_name(args.rows)
    for name in args.networks:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            row = pool.submit(measure, name, args.runs).result()
        rows[name] = row
        write_atomically(str(args.rows), "".join(json.dumps(rows[k]) + "\n" for k in sorted(rows)))
        print(f"{name}: {row['stock']['ms']:.2f} -> {row['arena']['ms']:.2f} ms", file=sys.stderr, flush=True)
    shown = [rows[name] for name in args.networks]
    _print(shown)
    return 0 if all(row["equal"] for row in shown) else 1


def measure(name: str, runs: int) -> dict[str, Any]:
    """The row of one network."""
    logging.disable(logging.WARNING)
    import torch
    from executorch.runtime import Runtime
    from torch.utils._pytree import tree_leaves

    from benchmarks.corpus.export import lowered
    from planner.bench.runner import machine
    from planner.executorch import arena_planning_pass
    from planner.executorch.compare import facts_of, same_bits, to_program

    model, _, variant = name.rpartition(".")
    torch.manual_seed(0)
    net, inputs = RUNNABLE[model].make()
    edge = lowered(net.eval().requires_grad_(False), inputs, Variant(variant))
    programs = {"stock": to_program(edge), "arena": to_program(edge, arena_planning_pass())}
    leaves = tree_leaves(list(inputs))
    methods = {plan: Runtime.get().load_program(p.buffer).load_method("forward") for plan, p in programs.items()}
    outputs = {plan: [x.clone() for x in m.execute(leaves)] for plan, m in methods.items()}
    times: dict[str, list[float]] = {plan: [] for plan in methods}
    for k in range(runs):
        for plan in ("stock", "arena") if k % 2 else ("arena", "stock"):
            start = time.perf_counter()
            methods[plan].execute(leaves)
            times[plan].append(1000 * (time.perf_counter() - start))
    row: dict[str, Any] = {"model": model, "variant": variant, "source": RUNNABLE[model].source, "runs": runs}
    row["equal"] = same_bits(outputs["stock"], outputs["arena"])
    row["ratio"] = statistics.median(a / s for a, s in zip(times["arena"], times["stock"], strict=True))
    for plan, program in programs.items():
        facts = asdict(facts_of(program))
        copies, copying = copy_times(program.buffer, leaves)
        memory = peak_memory(program.buffer, leaves)
        row[plan] = facts | {"ms": statistics.median(times[plan]), "times": times[plan]}
        row[plan] |= {"copies": copies, "copy_ms": copying, "peak_bytes": memory}
    return row | {"machine": machine()}


def copy_times(pte: bytes, leaves: list[Any]) -> tuple[int, float]:
    """How many copying instructions ran, and their milliseconds in all: medians of ten runs, by ETDump."""
    from executorch.devtools import Inspector
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    from planner.executorch.compare import COPIES

    module = _load_for_executorch_from_buffer(pte, enable_etdump=True)
    for _ in range(10):
        module.forward(leaves)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "etdump")
        module.write_etdump_result_to_file(path)
        inspector = Inspector(etdump_path=path)
    names = {f"native_call_{op.partition('::')[2]}" for op in COPIES}
    events = [e for block in inspector.event_blocks for e in block.events if e.name.partition(".")[0] in names]
    return len(events), float(sum(e.perf_data.p50 for e in events if e.perf_data is not None))


def peak_memory(pte: bytes, leaves: list[Any]) -> int:
    """Bytes that loading and running a program once adds to a process's peak: the median of three processes."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        program, inputs = Path(folder) / "program.pte", Path(folder) / "inputs.pt"
        program.write_bytes(pte)
        torch.save(leaves, inputs)
        command = [sys.executable, "-c", _RUN_ONCE, str(program), str(inputs)]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    return int(statistics.median(int(out.split()[-1]) for out in runs))


_RUN_ONCE = """
import sys, torch
from executorch.runtime import Runtime
def kilobytes(what):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what))
runtime = Runtime.get()
inputs = torch.load(sys.argv[2])
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # the peak starts anew
before = kilobytes("VmRSS")
method = runtime.load_program(sys.argv[1]).load_method("forward")
method.execute(inputs)
print(1024 * (kilobytes("VmHWM") - before))
"""


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table(
        "network", "plan", "arena bytes", "copies", "copying ms", "run ms", "ours / stock", "peak MB", "equal"
    )
    for row in rows:
        for plan in ("stock", "arena"):
            r = row[plan]
            ratio = f"{row['ratio']:.3f}" if plan == "arena" else ""
            name = f"{row['model']}.{row['variant']}" if plan == "stock" else ""
            numbers = (f"{r['arena']:,}", str(r["copies"]), f"{r['copy_ms']:.3f}", f"{r['ms']:.2f}", ratio)
            table.add_row(name, plan, *numbers, f"{r['peak_bytes'] / 1e6:.1f}", str(row["equal"]) if ratio else "")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    sys.exit(main())
