"""Changes to a graph once a plan is made: copies are taken out, or replaced by smaller ones; stale specs go.

All can be undone until `Rewrite.commit`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from executorch.exir.tensor import TensorSpec
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map_only

from planner.executorch import nodes
from planner.executorch.copies import add_call, add_clone, twin
from planner.program.share_rules import Share
from planner.program.sharing import Decision, Outcome
from planner.program.views import View

aten = torch.ops.aten


class Rewrite:
    """Concats and views replaced by ``getitem([result, *operands], 0)``, for which the emitter makes no instruction.

    What is not in place is copied there by ``clone`` (a part of a concat) or ``slice_copy`` (a result of a view). The
    operands stay among the arguments, so that the data dependence is still in the graph. The old nodes stay, unused,
    until `commit` erases them, so that `undo` can bring them back.

    Parameters
    ----------
    module : GraphModule
        With the plan's offsets in its specs.
    decisions : iterable of Decision
    """

    def __init__(self, module: GraphModule, decisions: Iterable[Decision]) -> None:
        self.module = module
        self.added: list[Node] = []
        self.replaced: list[tuple[Node, Node]] = []
        elided = {d.op: d for d in decisions if d.elided}
        for node in list(module.graph.nodes):
            if node.name in elided:
                self._replace(node, elided[node.name])

    @property
    def names(self) -> frozenset[str]:
        """Names of the nodes that no longer count."""
        return frozenset(old.name for old, _ in self.replaced)

    def _replace(self, node: Node, decision: Decision) -> None:
        with self.module.graph.inserting_before(node):
            if decision.share is Share.CONCAT:
                operands = self._parts(node, decision)
            else:
                view = nodes.view_of(node)
                assert view is not None  # else there was nothing to decide
                operands = [view.source]
                if decision.outcome is Outcome.PARTIAL:
                    self._copy_results(node, view, decision)
            stand_in = self.module.graph.call_function(operator.getitem, ([node.kwargs["out"], *operands], 0))
        self.added.append(stand_in)
        stand_in.meta = dict(node.meta)
        node.replace_all_uses_with(stand_in)
        self.replaced.append((node, stand_in))

    def _parts(self, cat: Node, decision: Decision) -> list[Node]:
        """The concat's parts; those that are not in place are cloned into their slots."""
        (out,), (layout,) = nodes.specs_of(cat), nodes.layouts_of(cat)
        dim = nodes.integer_argument(cat, 1, "dim", 0)
        inner = layout.strides[dim % len(layout.shape)] * layout.itemsize
        parts, along = [], 0
        for k, part in enumerate(nodes.leaves(cat.args[0])):
            (spec,) = nodes.specs_of(part)
            if spec.nbytes() and k not in decision.placed:
                self.added += add_clone(self.module.graph, part, _slot(spec, out, along * inner))
                part = self.added[-1]
            parts.append(part)
            along += int(spec.shape[dim % len(spec.shape)]) if spec.nbytes() else 0
        return parts

    def _copy_results(self, node: Node, view: View, decision: Decision) -> None:
        """The results of a split that are not in place are copied one by one."""
        assert view.axis is not None  # a reshape has one result
        for k, (spec, start) in enumerate(zip(nodes.specs_of(node), view.starts, strict=True)):
            if not spec.nbytes() or k in decision.placed:
                continue
            out = self._add(operator.getitem, (node.kwargs["out"], k), {}, spec)
            if view.drops_axis:
                self._add(aten.select_copy.int_out, (view.source, view.axis, start), {"out": out}, spec)
            else:
                stop = start + int(spec.shape[view.axis])
                self._add(aten.slice_copy.Tensor_out, (view.source, view.axis, start, stop), {"out": out}, spec)

    def _add(self, *call: Any) -> Node:
        self.added.append(add_call(self.module.graph, *call))
        return self.added[-1]

    def commit(self) -> None:
        """Erase the old nodes."""
        for old, _ in reversed(self.replaced):
            self.module.graph.erase_node(old)
        if self.replaced:
            self.module.recompile()
        self.replaced, self.added = [], []

    def undo(self) -> None:
        """Use the old nodes again."""
        for old, stand_in in reversed(self.replaced):
            stand_in.replace_all_uses_with(old)
        for node in reversed(self.added):
            self.module.graph.erase_node(node)
        self.replaced, self.added = [], []


def _slot(part: TensorSpec, whole: TensorSpec, at: int) -> TensorSpec:
    """The place of a part in the whole, as a tensor of its own."""
    slot = twin(part)
    slot.mem_id, slot.mem_offset = whole.mem_id, whole.mem_offset + at
    slot.lifetime = list(whole.lifetime)
    return slot


def refresh_output_specs(module: GraphModule) -> None:
    """Let the output node refer to the specs of what it returns, so that nothing looks at stale ones."""
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    current = {id(spec): argument.meta["spec"] for argument, spec in nodes.stale_output_specs(output)}
    if current:
        output.meta["spec"] = tree_map_only(TensorSpec, lambda s: current.get(id(s), s), output.meta["spec"])
