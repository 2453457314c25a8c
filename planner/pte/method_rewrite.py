"""A plan written into a copy of a method: places, arena sizes, and instructions that are gone or smaller."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner import api
from planner.program.dataflow import Dataflow
from planner.program.share_rules import Share
from planner.program.sharing import Decision, Outcome
from planner.pte.accesses import Access
from planner.pte.method import Method, Region
from planner.pte.schema import (
    AllocationDetails,
    EValue,
    ExecutionPlan,
    Instruction,
    KernelCall,
    Tensor,
    TensorList,
)

XNNPACK_PADDING = 64
"""Bytes behind the last tensor that XNNPACK may read; stock's planner leaves them, too."""


@dataclass(frozen=True)
class Rewritten:
    """A method's new plan; its instructions, each with the name that it had; where its state lies now."""

    plan: ExecutionPlan
    steps: tuple[tuple[str, Access], ...]
    regions: tuple[Region, ...]


def not_expressible(decisions: tuple[Decision, ...]) -> list[str]:
    """Names of the ops of which only some results could be views: no operator of the program copies the others."""
    return [d.op for d in decisions if d.share is Share.VIEW and d.outcome is Outcome.PARTIAL]


def rewrite(method: Method, flow: Dataflow, plan: api.Plan) -> Rewritten:
    """Write a plan into a copy of a method.

    Concats and views that are elided lose their instruction. A concat's part that is not in place is copied there by a
    concat of this one part, so that the program needs no operator that it did not have.

    Parameters
    ----------
    method : Method
        Stays as it is.
    flow : Dataflow
        The method's.
    plan : api.Plan
        Of the flow; without partly elided views.
    """
    made = copy.deepcopy(method.plan)
    places = {i: _placed(flow, plan, name) for i, name in method.labels.items() if method.place(i)}
    ends = dict.fromkeys((a for a, _ in filter(None, places.values())), 0) | dict(plan.peaks)
    for i, place in places.items():
        arena, offset = place or (method.place(i)[0], 0)  # type: ignore[index]  # unused: anywhere
        ends[arena] = max(ends.get(arena, 0), offset + method.nbytes(i))
        made.values[i].val.allocation_info = _details(arena, offset)  # type: ignore[union-attr]
    elided = {d.op: d for d in plan.decisions if d.elided}
    chain = made.chains[0]
    steps: list[tuple[str, Access]] = []
    instructions: list[Instruction] = []
    traces = []
    for a, instruction in zip(method.accesses, chain.instructions, strict=True):
        name = method.names[a.index]
        new = [(name, a, instruction)]
        if name in elided:
            new = _copied_parts(method, made, a, elided[name]) if elided[name].share is Share.CONCAT else []
        steps += [(n, access) for n, access, _ in new]
        instructions += [i for _, _, i in new]
        traces += [chain.stacktrace[a.index]] * len(new) if chain.stacktrace else []
    chain.instructions = instructions
    chain.stacktrace = traces if chain.stacktrace else chain.stacktrace
    made.non_const_buffer_sizes = _sizes(method, ends)
    regions = []
    for r in method.regions:
        _, low = plan.place(r.name)
        regions.append(replace(r, low=low, high=low + r.high - r.low))
    return Rewritten(made, tuple(steps), tuple(regions))


def _placed(flow: Dataflow, plan: api.Plan, name: str) -> tuple[int, int] | None:
    """Arena and offset of a tensor; None if nothing uses it."""
    if name not in flow.by_id or flow.root(name).id not in flow.lifetimes:
        return None
    return plan.place(flow.root(name).id)


def _details(arena: int, offset: int) -> AllocationDetails:
    return AllocationDetails(arena, offset & 0xFFFFFFFF, offset >> 32)


def _copied_parts(
    method: Method, made: ExecutionPlan, a: Access, decision: Decision
) -> list[tuple[str, Access, Instruction]]:
    """Copies of the parts of a concat that are not in place."""
    (out,) = a.writes
    whole, axis = method.layouts[out], method.concat_axis(a)
    assert axis is not None
    inner = whole.strides[axis] * whole.itemsize
    info = made.values[out].val.allocation_info  # type: ignore[union-attr]
    call = method.plan.chains[0].instructions[a.index].instr_args
    assert isinstance(call, KernelCall)
    assert info is not None
    new, along = [], 0
    for k, part in enumerate(a.reads):
        if not method.nbytes(part):
            continue
        if k not in decision.placed:
            slot = copy.deepcopy(method.plan.values[part].val)
            assert isinstance(slot, Tensor)
            slot.data_buffer_idx, slot.extra_tensor_info = 0, None
            slot.allocation_info = _details(info.memory_id, info.memory_offset + along * inner)
            made.values += [EValue(TensorList([part])), EValue(slot)]
            parts, into = len(made.values) - 2, len(made.values) - 1
            args = [parts, call.args[1], into, *[into] * (len(call.args) - 3)]
            access = replace(a, arguments=tuple(args[:3]), reads=(part,), writes=(into,))
            copies = Instruction(KernelCall(call.op_index, args))
            new.append((f"{method.names[a.index]} part {k}", access, copies))
        along += method.layouts[part].shape[axis]
    return new


def _sizes(method: Method, ends: Mapping[int, int]) -> list[int]:
    """Bytes of each arena: up to the last tensor, and the padding that there was for delegates."""
    before = method.plan.non_const_buffer_sizes
    sizes = [0] * len(before)
    delegates = {d.id for d in method.plan.delegates}
    for arena, end in ends.items():
        was = max(
            (at[1] + method.nbytes(i) for i in method.layouts if (at := method.place(i)) and at[0] == arena), default=0
        )
        slack = before[arena] - was if delegates else 0
        if any("xnnpack" in name.lower() for name in delegates):
            slack = min(slack, XNNPACK_PADDING) if delegates == {"XnnpackBackend"} else slack
        sizes[arena] = end + slack
    return sizes
