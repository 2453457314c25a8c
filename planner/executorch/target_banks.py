"""Banks of a target: from ExecuTorch's ``TargetMemoryMap``, or our own list, to what the planner needs.

The rules are those of ``executorch.exir.banked_memory_planning``: the order of the list is the preference, the fastest
first; a ``mem_id`` that a spec has already is a pin; one that no bank has is planned as ever, without a limit, and
never used for anything else; a bank's alignment is a multiple of the graph's. Only the CPU's memory can be in banks.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec
from torch.fx import GraphModule

from planner.api import PlanningError, Request
from planner.executorch import nodes
from planner.executorch.graph_flow import ReadGraph
from planner.program.banking import ANYWHERE
from solvers.banks.bank import Bank, check_banks

Pins = Mapping[int, int | None]
"""By spec (its id), the mem_id that it had before it was planned."""


def banks_of(given: Any, alignment: int) -> tuple[Bank, ...]:
    """The banks of a ``TargetMemoryMap``, or of a sequence of `solvers.banks.bank.Bank` or ExecuTorch's own.

    Raises
    ------
    ValueError
        If there are none, two have one name or ``mem_id``, a size is not positive, or an alignment is no multiple of
        the graph's.
    """
    banks = [Bank(b.name, b.size, b.mem_id, b.alignment) for b in getattr(given, "banks", given)]
    check_banks(banks)
    for b in banks:
        if b.size < 1:
            raise ValueError(f"bank {b.name!r}: size is {b.size}: it must be at least 1")
        if b.alignment is not None and b.alignment % alignment:
            raise ValueError(
                f"bank {b.name!r}: alignment is {b.alignment}: it must be a multiple of the graph's, {alignment}"
            )
    return tuple(banks)


def check_device(specs: Iterable[TensorSpec]) -> None:
    """Raise `PlanningError` if a tensor is in the memory of another device than the CPU."""
    for s in specs:
        if s.device != DeviceType.CPU:
            raise PlanningError(
                f"a tensor of shape {list(s.shape)} is in the memory of {s.device.name.lower()}: banks are the CPU's. "
                f"Remedy: plan without banks"
            )


def unused_mem_id(module: GraphModule, banks: Sequence[Bank]) -> int:
    """A mem_id that no bank has, nor any spec of a module and its submodules: until they are placed, tensors that may
    be in any bank have it."""
    graphs = [sub.graph for sub in module.modules() if isinstance(sub, GraphModule)]
    pinned = {s.mem_id for graph in graphs for node in graph.nodes for s in nodes.specs_of(node)}
    taken = {0, *(b.mem_id for b in banks), *(mem_id for mem_id in pinned if mem_id is not None)}
    return max(taken) + 1


def asked(request: Request, padding: int, branch: bool) -> Request:
    """The request for a graph whose every used arena gets ``padding`` bytes more.

    A bank's alignment binds the parts of others as well: ties that put a part elsewhere are not offered. A branch is
    planned as one piece; the enclosing graph puts it into a bank.
    """
    if not request.banks:
        return request
    least = math.lcm(request.policy.min_part_alignment, *(b.alignment or 1 for b in request.banks))
    banks = () if branch else tuple(replace(b, size=max(0, b.size - padding)) for b in request.banks)
    return replace(request, banks=banks, policy=replace(request.policy, min_part_alignment=least))


@contextlib.contextmanager
def unplaced(module: GraphModule, specs: Sequence[TensorSpec], pins: Pins, anywhere: int) -> Iterator[None]:
    """Give all specs that are not pinned the mem_id that stands for any bank; for the time being, results of cond that
    are not to be placed as well: they are where the branches' memory is."""
    planned = {id(s) for s in specs}
    results = [s for n in module.graph.nodes if nodes.returns_branch_memory(n) for s in nodes.specs_of(n)]
    others = [(s, s.mem_id) for s in results if id(s) not in planned]
    for s in specs:
        pin = pins.get(id(s))
        s.mem_id = anywhere if pin is None else pin
    for s, _ in others:
        s.mem_id = anywhere
    try:
        yield
    finally:
        for s, mem_id in others:
            s.mem_id = mem_id


def freed(graph: ReadGraph, banks: Sequence[Bank], anywhere: int, branch: bool) -> ReadGraph:
    """The graph with the tensors that have the mem_id ``anywhere`` in the arena that stands for any bank.

    What a delegate relies on, and all in a branch, is aligned as every bank asks: it may be in any.
    """
    strictest = math.lcm(*(b.alignment or 1 for b in banks))
    flow, tensors = graph.flow, []
    for t in flow.tensors:
        if t.rigid or (branch and t.arena == anywhere):
            t = replace(t, alignment=math.lcm(t.alignment, strictest))
        tensors.append(replace(t, arena=ANYWHERE) if t.arena == anywhere and not branch else t)
    # of the memory of branches, that in which results are comes first
    ids = {k: tuple(sorted(some, key=lambda i: flow.by_id[i].arena != anywhere)) for k, some in graph.ids.items()}
    return ReadGraph(replace(flow, tensors=tuple(tensors)), ids)
