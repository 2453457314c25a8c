"""Branches of control flow: planned from 0 up, then moved to the memory that the enclosing graph gives them."""

from __future__ import annotations

from torch.fx import GraphModule

from planner.api import Plan
from planner.executorch import nodes
from planner.executorch.graph import region_name

Moves = dict[str, dict[int, int]]
"""By control-flow node and arena, how far its branches were moved, bytes."""


def move_branches(plan: Plan, module: GraphModule) -> Moves:
    """Shift the specs of every control-flow node's branches to the memory that the plan gives the node."""
    moves: Moves = {}
    for node in module.graph.nodes:
        if nodes.is_control_flow(node):
            for arena in plan.peaks:
                try:
                    _, offset = plan.place(region_name(node, arena))
                except KeyError:
                    continue
                moves.setdefault(node.name, {})[arena] = offset
    shift_branches(module, moves, 1)
    return moves


def shift_branches(module: GraphModule, moves: Moves, sign: int) -> None:
    """Move the branches' memory (``sign`` 1), or move it back (-1)."""
    for node in module.graph.nodes:
        if node.name in moves:
            seen: set[int] = set()
            for sub in nodes.branches(module, node):
                for inner in (m for m in sub.modules() if isinstance(m, GraphModule)):
                    for spec in (nodes.root_spec(s) for n in inner.graph.nodes for s in nodes.specs_of(n)):
                        if id(spec) not in seen and spec.mem_offset is not None and spec.mem_id is not None:
                            seen.add(id(spec))
                            spec.mem_offset += sign * moves[node.name].get(spec.mem_id, 0)
