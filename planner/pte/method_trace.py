"""From a method to a `Trace` for the replay: what each instruction reads and writes, and where."""

from __future__ import annotations

from collections.abc import Sequence

from planner.judge import moves
from planner.judge.memory import judging
from planner.judge.replay import Move, Step, Trace
from planner.pte.accesses import Access
from planner.pte.method import Method


def trace(method: Method, steps: Sequence[tuple[str, Access]] | None = None) -> Trace:
    """A method's trace.

    Parameters
    ----------
    method : Method
        Tells where each tensor lies.
    steps : sequence of (str, Access), optional
        The instructions, each under the name that the judge knows it by; if not given, the method's own.

    Raises
    ------
    UnjudgedError
        At an instruction that cannot be read.
    """
    if steps is None:
        steps = [(method.names[a.index], a) for a in method.accesses]
    inputs = [method.ref(i) for i in method.tensors(method.plan.inputs)]
    state = [r.ref for r in method.regions]
    outputs = [method.ref(i) for i in method.tensors(method.plan.outputs)]
    made = [_step(method, name, a) for name, a in steps if a.reads or a.writes or a.mutates]
    return Trace((*inputs, *state), tuple(made), tuple(outputs), tuple(state))


def _step(method: Method, name: str, a: Access) -> Step:
    with judging(name):
        return _read(method, name, a)


def _read(method: Method, name: str, a: Access) -> Step:
    reads, writes, mutates = (tuple(map(method.ref, x)) for x in (a.reads, a.writes, a.mutates))
    tolerant = set(method.tolerant(a))
    results = [method.layouts[i] for i in a.writes]
    elementwise = tuple(k for k, i in enumerate(a.reads) if i in tolerant and method.layouts[i].alike(results[0]))
    return Step(name, reads, writes, mutates, _moved(method, a), elementwise)


def _moved(method: Method, a: Access) -> tuple[Move, ...] | None:
    """What an instruction copies, if that is all that it does."""
    outs = [method.layouts[i] for i in a.writes]
    if a.mutates or not outs:
        return None
    if (axis := method.concat_axis(a)) is not None:
        return moves.concatenated([method.layouts[i] for i in a.reads], outs, axis)
    if (view := method.view(a)) is None:
        return None
    return moves.cut_out(view, [method.layouts[view.source]], outs, a.reads.index(view.source))
