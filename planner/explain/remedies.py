"""What would lower a program's peak, in plain words: weights that are made at run time, concats that copy, inputs and
outputs in the arena, write-backs at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from planner.program.dataflow import Dataflow, Op, Role
from planner.program.share_rules import Share
from planner.program.sharing import Decision, Outcome

LEAST_SHARE = 0.05
"""What takes less of the peak is not worth a word."""

LEAST_GAIN = 0.99
"""Nor what leaves more of it."""


def remedies(
    flow: Dataflow,
    decisions: Iterable[Decision],
    alive: dict[str, int],
    step: int,
    load_without: Callable[[Collection[str]], int],
) -> tuple[str, ...]:
    """What would lower the peak.

    Parameters
    ----------
    flow : Dataflow
    decisions : iterable of Decision
        What became of the ops that could share.
    alive : dict of str to int
        Bytes of each tensor that is needed in the step of the peak.
    step : int
        That step.
    load_without : callable
        Gives the largest load, bytes, if some tensors were not there.
    """
    peak = sum(alive.values())
    large = {i: n for i, n in alive.items() if n >= LEAST_SHARE * peak}
    folded = _from_constants(flow)
    out = [*_weights(flow, large, folded, peak, load_without), *_copies(flow, decisions, step)]
    out += _write_backs(flow, large, step)
    out += _callers(flow, large, load_without, peak)
    return tuple(dict.fromkeys(out))


def _from_constants(flow: Dataflow) -> set[str]:
    """Tensors that are computed from constants alone."""
    found = {t.id for t in flow.tensors if t.role is Role.CONSTANT}
    for op in flow.ops:
        if op.reads and not op.mutates and all(i in found for i in op.reads):
            found |= set(op.writes)
    return found


def _weights(
    flow: Dataflow,
    large: dict[str, int],
    folded: set[str],
    peak: int,
    load_without: Callable[[Collection[str]], int],
) -> list[str]:
    made = [i for i in large if i in folded and i in flow.writer]
    if not made:
        return []
    every = {i for i in folded if i in flow.writer}
    left = load_without(every)
    if left >= LEAST_GAIN * peak:
        return []
    words = ", ".join(f"{i} ({large[i]:,} bytes, by {flow.writer[i].target})" for i in made)
    return [
        f"computed from weights alone, at every run: {words}. Fold them before `to_edge`: "
        "`to_edge(constant_prop_pass(exported.run_decompositions()))`, with the pass from "
        f"executorch.exir.passes.constant_prop_pass. The load falls from {peak:,} to {left:,} bytes"
    ]


def _copies(flow: Dataflow, decisions: Iterable[Decision], step: int) -> list[str]:
    """Concats at the peak that copy although they need not."""
    at = {op.name: k for k, op in enumerate(flow.ops)}
    out = []
    for d in decisions:
        if d.share is not Share.CONCAT or d.outcome is not Outcome.REFUSED or d.op not in at:
            continue
        op = flow.ops[at[d.op]]
        start, end = flow.lifetimes.get(flow.root(op.writes[0]).id, (0, 0))
        if start <= step < end and (hint := _hint(d.reason)):
            out.append(f"concat {d.op} copies {d.copied:,} bytes: {d.reason}. {hint}")
    return out


def _hint(reason: str) -> str:
    hints = {
        "mixed dim_order": "Use one memory format for all that meets here.",
        "not contiguous": "With extent 1 in the dimensions outside the concat's (a batch of one, say), its parts could "
        "be written in place.",
        "mixed dtype": "Cast before the parts are computed.",
        "dynamic shape": "With a fixed shape the parts could be written in place.",
        "not memory-planned": "Let the pass allocate inputs and outputs (alloc_graph_input, alloc_graph_output).",
    }
    return next((hint for what, hint in hints.items() if what in reason), "")


def _write_backs(flow: Dataflow, large: dict[str, int], step: int) -> list[str]:
    """New values of buffers that wait for their write-back."""
    out = []
    for k, op in enumerate(flow.ops):
        if k < step or not op.mutates or not op.target.startswith("aten::copy_"):
            continue
        waiting = [i for i in op.reads if flow.root(i).id in large and _last_use(flow, i) == k]
        out += [
            f"{i} ({large[flow.root(i).id]:,} bytes) waits for its write-back into {op.mutates[0]} in {op.name}. "
            "Export with `arena_planning_pass`, which copies it back where it is born"
            for i in waiting
        ]
    return out


def _last_use(flow: Dataflow, i: str) -> int:
    return max((k for k, op in enumerate(flow.ops) if i in _touched(op)), default=-1)


def _touched(op: Op) -> tuple[str, ...]:
    return (*op.reads, *op.writes, *op.mutates)


def _callers(
    flow: Dataflow, large: dict[str, int], load_without: Callable[[Collection[str]], int], peak: int
) -> list[str]:
    """Inputs and outputs that lie in the arena although the caller has memory of its own for them."""
    out = []
    kinds = (
        ("input", "alloc_graph_input", [t.id for t in flow.tensors if t.role is Role.INPUT]),
        ("output", "alloc_graph_output", list(flow.outputs)),
    )
    for what, option, ids in kinds:
        here = [i for i in ids if i in large and flow.by_id[i].role in (Role.INPUT, Role.VALUE)]
        left = load_without(ids) if here else peak
        if left < LEAST_GAIN * peak:
            words = ", ".join(f"{i} ({large[i]:,} bytes, {_until(flow, i)})" for i in dict.fromkeys(here))
            out.append(
                f"{what}s in the arena: {words}. With `{option}=False` the caller's memory is used for them. "
                f"The load falls from {peak:,} to {left:,} bytes"
            )
    return out


def _until(flow: Dataflow, i: str) -> str:
    end = flow.lifetimes[flow.root(i).id][1]
    return "to the end" if end > len(flow.ops) else f"until {flow.ops[end - 1].name}" if end > 0 else "never used"
