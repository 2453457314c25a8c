"""Branches of control flow: planned from 0 up, then moved to the memory that the enclosing graph gives them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from executorch.exir import memory
from executorch.exir.passes.replace_view_copy_with_view_pass import _ViewSpec
from executorch.exir.tensor import TensorSpec
from torch.fx import GraphModule, Node

from planner.api import Plan
from planner.executorch import nodes
from planner.executorch.copies import add_clone, twin
from planner.executorch.graph_flow import region_name

Moved = list[tuple[TensorSpec, int, int]]
"""Specs of branches, with the mem_id and the offset (bytes) that they had."""


def move_branches(plan: Plan, module: GraphModule) -> Moved:
    """Move the specs of every control-flow node's branches to the memory that the plan gives the node."""
    moved: Moved = []
    for node in module.graph.nodes:
        if not nodes.is_control_flow(node):
            continue
        seen: set[int] = set()
        for sub in nodes.branches(module, node):
            for inner in (m for m in sub.modules() if isinstance(m, GraphModule)):
                for spec in (nodes.root_spec(s) for n in inner.graph.nodes for s in nodes.specs_of(n)):
                    if id(spec) not in seen and spec.mem_offset is not None and spec.mem_id is not None:
                        seen.add(id(spec))
                        moved += _move(plan, region_name(node, spec.mem_id), spec)
    return moved


def _move(plan: Plan, region: str, spec: TensorSpec) -> Moved:
    try:
        arena, offset = plan.place(region)
    except KeyError:
        return []
    before = (spec, spec.mem_id, spec.mem_offset)
    spec.mem_id, spec.mem_offset = arena, spec.mem_offset + offset
    return [before]


def put_back(moved: Moved) -> None:
    """Undo what `move_branches` did."""
    for spec, mem_id, offset in moved:
        spec.mem_id, spec.mem_offset = mem_id, offset


def settle_views(module: GraphModule, planned: Sequence[TensorSpec], branch: bool) -> list[TensorSpec]:
    """Copy what is viewed but does not lie where it is planned, and view the copy.

    A ``memory.view`` is no instruction: the emitter gives it the address that is planned for what it views. A result of
    cond is not there but where the branch left it; an input of a map's or scan's body may be the caller's tensor,
    although stock plans a place for it (and reads the wrong bytes).

    Parameters
    ----------
    module : GraphModule
    planned : sequence of TensorSpec
    branch : bool
        Is the module a submodule of control flow?

    Returns
    -------
    list of TensorSpec
        The copies, which are still to be placed.
    """
    placed = {id(s) for s in planned}
    made = []
    for node in list(module.graph.nodes):
        if nodes.returns_branch_memory(node):
            made += [s for r in list(node.users) if r.target is operator.getitem for s in _settle(module, r)]
        elif branch and node.op == "placeholder" and any(id(s) in placed for s in nodes.specs_of(node)):
            made += _settle(module, node)
    return made


def _settle(module: GraphModule, viewed: Node) -> list[TensorSpec]:
    views = [n for n in viewed.users if n.target is memory.view]
    if not views:
        return []
    (spec,) = nodes.specs_of(viewed)
    first = next(n for n in module.graph.nodes if n in viewed.users)
    with module.graph.inserting_before(first):
        _, copy = add_clone(module.graph, viewed, twin(spec))
    for view in views:
        view.replace_input_with(viewed, copy)
        _view_again(view)
    return [copy.meta["spec"]]


def _view_again(view: Node) -> None:
    """Let a view, and all views of it, refer to what it now shows."""
    base = view.args[0]
    assert isinstance(base, Node)
    view.meta["spec"] = _ViewSpec(base.meta["spec"], list(view.meta["spec"].shape))
    for user in view.users:
        if user.target is memory.view:
            _view_again(user)
