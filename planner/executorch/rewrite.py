"""Changes to a graph: concats are taken out, or left in after all; stale specs of the output node are replaced."""

from __future__ import annotations

import operator
from collections.abc import Collection

from executorch.exir.tensor import TensorSpec
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map_only

from planner.executorch import nodes


class Elision:
    """Concats replaced by ``getitem([result, *parts], 0)``, for which the emitter makes no instruction.

    The parts stay among the arguments, so that the data dependence is still in the graph. The concats stay, unused,
    until `commit` erases them, so that `undo` can bring them back.

    Parameters
    ----------
    module : GraphModule
    names : collection of str
        Names of the concat nodes to elide.
    """

    def __init__(self, module: GraphModule, names: Collection[str]) -> None:
        self.module = module
        self.replaced = [(n, self._stand_in(n)) for n in list(module.graph.nodes) if n.name in names]

    @property
    def names(self) -> frozenset[str]:
        """Names of the concats that no longer count."""
        return frozenset(cat.name for cat, _ in self.replaced)

    def _stand_in(self, cat: Node) -> Node:
        graph = self.module.graph
        with graph.inserting_before(cat):
            stand_in = graph.call_function(operator.getitem, ([cat.kwargs["out"], *cat.args[0]], 0))  # type: ignore[misc]
        stand_in.meta = dict(cat.meta)
        cat.replace_all_uses_with(stand_in)
        return stand_in

    def commit(self) -> None:
        """Erase the concats: as many nodes as before are left, in the same order."""
        for cat, _ in reversed(self.replaced):
            self.module.graph.erase_node(cat)
        if self.replaced:
            self.module.recompile()
        self.replaced = []

    def undo(self) -> None:
        """Use the concats again."""
        for cat, stand_in in reversed(self.replaced):
            stand_in.replace_all_uses_with(cat)
            self.module.graph.erase_node(stand_in)
        self.replaced = []


def refresh_output_specs(module: GraphModule) -> None:
    """Let the output node refer to the specs of what it returns, so that nothing looks at stale ones."""
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    current = {id(spec): argument.meta["spec"] for argument, spec in nodes.stale_output_specs(output)}
    if current:
        output.meta["spec"] = tree_map_only(TensorSpec, lambda s: current.get(id(s), s), output.meta["spec"])
