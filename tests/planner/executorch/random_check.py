"""Lower a random graph once, plan it with stock's pass and with ours, run both, compare with each other and eager."""

from __future__ import annotations

import inspect
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir import to_edge
from executorch.exir.passes import MemoryPlanningPass
from torch import Tensor

from planner.api import Request
from planner.executorch import arena_planning_pass
from planner.executorch.compare import ProgramFacts, facts_of, near, run_program, same_bits, to_program
from planner.pte.peaks import show
from planner.pte.program_file import parse_pte
from planner.pte.replanning import checked_bytes, replan
from solvers.run import Options
from tests.planner.executorch.random_graphs import RandomGraph, random_graph

STOCK_OPTIONS = {
    "alignment": (16, 16, 16, 1, 64),
    "alloc_graph_input": (True, True, True, False),
    "alloc_graph_output": (True, True, True, False),
}
"""What a seed draws from for both passes."""

OUR_OPTIONS = {
    "min_part_alignment": (1, 1, 1, 16),
    "preserve_inputs": (False, False, True),
    "feedback_safe": (False, False, True),
    "alias_outputs": (True, True, False),
}
"""What a seed draws from for our pass; options that it does not have (yet) are passed over."""

MAY_COST_BYTES = ("preserve_inputs", "feedback_safe")
"""Options that ask for more than stock gives, so that the arena may be larger."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed.

    Attributes
    ----------
    seed : int
    options : dict
        As drawn or given.
    stock, ours : ProgramFacts
    stock_right : bool
        Did stock's program give what eager gives, in all runs?
    exact, branches : bool
        Of the graph.
    ops : Counter of str
        The ops that were planned.
    """

    seed: int
    options: dict[str, Any]
    stock: ProgramFacts
    ours: ProgramFacts
    stock_right: bool
    exact: bool
    branches: bool
    ops: Counter[str]


class NotExported(Exception):
    """ExecuTorch itself does not lower the graph."""


class Difference(AssertionError):
    """Our program is wrong, or larger than stock's."""


def options_of(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a seed: for both passes, and for ours alone. Each is drawn apart, so that new ones move none."""
    known = inspect.signature(arena_planning_pass).parameters

    def draw(table: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        return {k: random.Random(f"{k} {seed}").choice(v) for k, v in table.items() if k in known}

    return draw(STOCK_OPTIONS), draw(OUR_OPTIONS)


def check(seed: int, **pass_arguments: Any) -> Outcome:
    """Check a seed's graph.

    Parameters
    ----------
    seed : int
    pass_arguments
        For `arena_planning_pass`, over what the seed draws.

    Raises
    ------
    NotExported
        If ExecuTorch does not lower the graph.
    Difference
        If our program differs: from stock's in any bit (where stock's is right), or from eager; or needs more memory.
    """
    both, ours = options_of(seed)
    both |= {k: v for k, v in pass_arguments.items() if k in STOCK_OPTIONS}
    ours |= both | pass_arguments
    graph = random_graph(seed)
    try:
        return _check(seed, graph, both, ours)
    except NotExported:
        raise
    except Exception as error:
        kind = Difference if isinstance(error, AssertionError) else RuntimeError
        changed = "".join(f", {k}={v!r}" for k, v in pass_arguments.items())
        raise kind(
            f"seed {seed}: {error}\n{graph.source}\noptions: {ours}\n"
            f"again: python -c 'from tests.planner.executorch.random_check import check; print(check({seed}{changed}))'"
        ) from error


def _check(seed: int, graph: RandomGraph, both: dict[str, Any], ours: dict[str, Any]) -> Outcome:
    edge = edge_of(graph)
    if returns_an_input(edge):  # where caller's memory is bound to a value that is both, the runtime reads its output
        for options in (both, ours):
            options.update(alloc_graph_input=True, alloc_graph_output=True)
    our_pass = arena_planning_pass(**{"strict": True, "time_limit": 5, "workers": 1} | ours)
    programs = [to_program(edge, p) for p in (stock_pass(both), our_pass)]
    stock_runs, our_runs = (run(p.buffer, graph) for p in programs)
    stock_right = all(like_eager(graph, *pair) for pair in zip(stock_runs, graph.wanted, strict=True))
    for k, (stock, own, wanted) in enumerate(zip(stock_runs, our_runs, graph.wanted, strict=True)):
        if not like_eager(graph, own, wanted):
            beside = "stock is right" if like_eager(graph, stock, wanted) else "stock is wrong too"
            raise AssertionError(f"run {k} differs from eager ({beside}): {differences(own, wanted)}")
        if stock_right and not same_bits(stock, own):
            raise AssertionError(f"run {k} differs from stock: {differences(own, stock)}")
    if seed % 2:
        _check_replan("ours", bytes(programs[1].buffer), graph, our_runs, True)
    else:
        _check_replan("stock's", bytes(programs[0].buffer), graph, stock_runs, stock_right)
    facts = [facts_of(p) for p in programs]
    free = not any(ours.get(k) for k in MAY_COST_BYTES)
    if facts[1].arena > facts[0].arena and free and not graph.branches:
        raise AssertionError(f"the arena has {facts[1].arena} bytes, stock's {facts[0].arena}")
    return Outcome(seed, ours, facts[0], facts[1], stock_right, graph.exact, graph.branches, ops_of(edge))


def _check_replan(whose: str, pte: bytes, graph: RandomGraph, first_runs: list[list[Tensor]], right: bool) -> None:
    """A program, replanned, does what it did, and needs no more; what holds its peak can be told."""
    options = Options(time_limit=5, workers=1, reproducible=True)
    file = parse_pte(pte, whose)
    made, (report,) = replan(file, Request(options=options))
    if any("refused" in note for note in report.notes):
        raise AssertionError(f"replan of {whose} gave something up: {report.notes}")
    if any(new > old for new, old in zip(report.after.arenas, report.before.arenas, strict=True)):
        raise AssertionError(f"replanned, the arena has {report.after.total} bytes, {whose} {report.before.total}")
    if (shown := show(file, options)[0].kept) not in ("", report.kept):
        raise AssertionError(f"show of {whose} gave up: {shown}")
    runs = run(checked_bytes(made, "replanned"), graph)
    for k, (own, before, wanted) in enumerate(zip(runs, first_runs, graph.wanted, strict=True)):
        if not same_bits(own, before) and (right or not like_eager(graph, own, wanted)):
            raise AssertionError(f"replanned, run {k} differs from {whose}: {differences(own, before)}")


def stock_pass(options: dict[str, Any]) -> MemoryPlanningPass:
    """Stock's pass; at an alignment below 16 it cannot plan: it sorts by sizes that it changes afterwards."""
    return MemoryPlanningPass(**options | {"alignment": max(16, options["alignment"])})


def run(pte: bytes, graph: RandomGraph) -> list[list[Tensor]]:
    """Run with all inputs in turn; the outputs contiguous, for `same_bits`."""
    runs = run_program(pte, *graph.inputs)
    return [[t.clone(memory_format=torch.contiguous_format) for t in outputs] for outputs in runs]


def edge_of(graph: RandomGraph) -> Any:
    """Export to edge; `to_edge`, which takes half the time of `compare.lower` and gives the same here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return to_edge(torch.export.export(graph.module, graph.inputs[0]))
        except Exception as error:
            raise NotExported(str(error)) from error


def returns_an_input(edge: Any) -> bool:
    """Is an output of the graph one of its inputs?"""
    output = next(n for n in reversed(edge.exported_program().graph.nodes) if n.op == "output")
    return any(n.op == "placeholder" for n in output.all_input_nodes)


def ops_of(edge: Any) -> Counter[str]:
    """How many calls of each operator there are."""
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    return Counter(getattr(n.target, "__name__", str(n.target)).removeprefix("aten.") for n in calls)


def like_eager(graph: RandomGraph, got: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """Equal if the graph is exact, but for the sign of zero (of relu's and maximum's, say); else within tolerance."""
    if not same_types(got, wanted):
        return False
    return all(map(torch.equal, got, wanted)) if graph.exact else near(got, wanted)


def same_types(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """Are the shapes and dtypes the same?"""
    return [(t.dtype, t.shape) for t in got] == [(t.dtype, t.shape) for t in wanted]


def differences(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> str:
    """The outputs that differ."""
    if not same_types(got, wanted):
        return f"{[(t.dtype, t.shape) for t in got]} instead of {[(t.dtype, t.shape) for t in wanted]}"
    wrong = [(k, g, w) for k, (g, w) in enumerate(zip(got, wanted, strict=True)) if not same_bits([g], [w])]
    return "; ".join(f"output {k} is {g} instead of {w}" for k, g, w in wrong)
