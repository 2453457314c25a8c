"""The figures of the report, as PNG: the same rows give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.tables import GREEDY, OURS, ByProblem, known, row_of
from planner.bench.row import Row

BLUE, ORANGE, GREY = "#2b6cb0", "#c05621", "#a0aec0"


def png(figure: Figure) -> bytes:
    """The figure's bytes; nothing in them tells when they were made."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    pyplot.close(figure)
    return out.getvalue()


def gap_per_problem(problems: ByProblem) -> bytes:
    """Greedy's excess over the optimum of whole tensors, and over the optimum with sharing, sorted."""
    pairs = []
    for rows in problems.values():
        greedy, shared = row_of(rows, GREEDY), known(rows, "all")
        excess = None if greedy is None else known(rows, "none").excess(greedy.peak)[0]
        if greedy is not None and excess is not None and shared.peak:
            pairs.append((excess, greedy.peak / shared.peak - 1))
    pairs.sort(reverse=True)
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    places = range(len(pairs))
    axes.bar(places, [100 * b for _, b in pairs], 1.0, color=GREY, label="over the arena with sharing")
    axes.bar(places, [100 * a for a, _ in pairs], 1.0, color=ORANGE, label="over the optimum of whole tensors")
    axes.set_xlabel(f"{len(pairs)} problems, sorted by excess")
    axes.set_ylabel("excess of ExecuTorch's greedy, %")
    axes.set_xlim(-0.5, len(pairs) - 0.5)
    axes.legend(frameon=False)
    return png(figure)


def time_to_proof(rows: Sequence[Row], planners: Sequence[str]) -> bytes:
    """How many problems each planner had at a proven optimum within a time."""
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    axes.set_prop_cycle(color=pyplot.get_cmap("tab20").colors)
    last = max((r.seconds for r in rows if r.status == "optimal" and r.seconds), default=1.0)
    for planner in planners:
        times = sorted(r.seconds for r in rows if r.planner == planner and r.status == "optimal")
        if times:
            style = {"linewidth": 2.5} if planner == OURS else {"linewidth": 1.2, "linestyle": "--"}
            axes.step([*times, last], [*range(1, len(times) + 1), len(times)], where="post", label=planner, **style)
    axes.set_xscale("log")
    axes.set_xlabel("seconds (median of the runs)")
    axes.set_ylabel("problems proven by the load or the planner")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize="small")
    return png(figure)


def arenas(exports: Sequence[Mapping[str, Any]]) -> bytes:
    """The arena of each export with our pass, as a share of stock's, sorted."""
    shares = sorted(e["arena"]["arena"] / e["stock"]["arena"] for e in exports if e["stock"]["arena"])
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    axes.bar(range(len(shares)), [100 * s for s in shares], 1.0, color=BLUE)
    axes.axhline(100, color=GREY, linewidth=1)
    axes.set_xlabel(f"{len(shares)} exports, sorted")
    axes.set_ylabel("arena, % of stock's")
    axes.set_xlim(-0.5, len(shares) - 0.5)
    axes.set_ylim(0, max(105, 105 * max(shares, default=1)))
    return png(figure)
