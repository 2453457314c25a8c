"""Write-backs of mutable buffers, moved from the end of the graph to where the new value is born.

ExecuTorch ends a graph with one ``copy_`` per mutable buffer, so that every new value (every layer's KV cache) is
alive there together with all others. Copied back at once, it is dead at once: later readers read the buffer.
"""

from __future__ import annotations

import torch
from executorch.exir import memory
from executorch.exir.passes.replace_view_copy_with_view_pass import _ViewSpec
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node

from planner.executorch import nodes


def mend_write_backs(module: GraphModule, signature: ExportGraphSignature | None) -> tuple[str, ...]:
    """Let every write-back of a buffer write to the buffer.

    A signature names what an output mutates by its fully qualified name, and an input by its placeholder's; stock's
    ``insert_write_back_for_buffers_pass`` looks both up in one table, so that the new value of a buffer ``state`` is
    copied onto an input that is called ``state``, and never reaches the buffer.

    Parameters
    ----------
    module : GraphModule
    signature : ExportGraphSignature or None

    Returns
    -------
    tuple of str
        The buffers, by their fully qualified names, whose write-backs went to an input.
    """
    if signature is None:
        return ()
    placeholders = {n.target: n for n in module.graph.nodes if n.op == "placeholder"}
    buffers = {name: placeholders[p] for p, name in signature.inputs_to_buffers.items() if p in placeholders}
    returned = module.graph.output_node().args[0]
    mended = []
    for output, node in zip(signature.output_specs, returned, strict=False):  # type: ignore[arg-type]
        mutates = output.kind is OutputKind.BUFFER_MUTATION and isinstance(node, Node)
        if not mutates or node.target is not torch.ops.aten.copy_.default or output.target not in buffers:
            continue
        buffer, written = buffers[output.target], node.args[0]
        if written is not buffer and isinstance(written, Node) and written.target == output.target:
            node.update_arg(0, buffer)
            mended.append(output.target)
    if mended:
        module.recompile()
    return tuple(mended)


class WriteBacks:
    """The moves of one graph; done when made, `undo` takes them back.

    A write-back moves behind the birth of its value and behind the last node that reads the buffer's old bytes, if
    buffer and value are laid out alike and the value is not returned (the buffer would become an output).

    Parameters
    ----------
    module : GraphModule
    signature : ExportGraphSignature or None
    """

    def __init__(self, module: GraphModule, signature: ExportGraphSignature | None) -> None:
        self.graph = module.graph
        self.moved: list[str] = []
        self._was_before: list[tuple[Node, Node]] = []
        self._readers: list[tuple[Node, Node, Node]] = []  # reader, what it read, what it reads now
        self._views: list[Node] = []
        names = nodes.mutable_buffers(signature)
        buffers = {n for n in module.graph.nodes if n.op == "placeholder" and n.target in names}
        self._order = {n: k for k, n in enumerate(self.graph.nodes)}
        for node in list(self.graph.nodes):
            if node.target is torch.ops.aten.copy_.default and node.args[0] in buffers:
                self._move(node)
                self._order = {n: k for k, n in enumerate(self.graph.nodes)}

    def _move(self, write: Node) -> None:
        buffer, value = write.args[0], write.args[1]
        if not isinstance(buffer, Node) or not isinstance(value, Node) or not _may_move(buffer, value):
            return
        readers = [n for n in _uses(value) if n is not write]
        if any(n.op == "output" for n in (*readers, *(u for u in _uses(buffer)))):
            return
        old = [n for n in _uses(buffer) if n is not write]
        after = max((value, *old), key=self._order.__getitem__)
        later = [n for n in readers if self._order[n] > self._order[after]]
        if self._order[after] > self._order[write] or write.prev is after:
            return
        self._was_before.append((write, write.next))
        after.append(write)
        self.moved.append(write.name)
        stand_ins: dict[Node, Node] = {value: buffer}
        for reader in later:
            for read in [n for n in reader.all_input_nodes if n is value or _shows(n, value)]:
                if read not in stand_ins:
                    stand_ins[read] = self._view_of_buffer(write, buffer, read)
                reader.replace_input_with(read, stand_ins[read])
                self._readers.append((reader, read, stand_ins[read]))

    def _view_of_buffer(self, write: Node, buffer: Node, view: Node) -> Node:
        """The same view, of the buffer."""
        (spec,), (base,) = nodes.specs_of(view), nodes.specs_of(buffer)
        with self.graph.inserting_after(write):
            node = self.graph.call_function(memory.view, (buffer, list(spec.shape)))
        node.meta = dict(view.meta)
        node.meta["spec"] = _ViewSpec(base, list(spec.shape))
        self._views.append(node)
        return node

    def undo(self) -> None:
        """Put everything back."""
        for reader, before, now in reversed(self._readers):
            reader.replace_input_with(now, before)
        for node in reversed(self._views):
            self.graph.erase_node(node)
        for write, neighbour in reversed(self._was_before):
            neighbour.prepend(write)
        self._readers, self._views, self._was_before, self.moved = [], [], [], []


def _may_move(buffer: Node, value: Node) -> bool:
    """Is the value computed, all of its storage, and laid out as the buffer is?"""
    if value.op != "call_function" or value.target is memory.view:
        return False
    new, old = nodes.specs_of(value), nodes.specs_of(buffer)
    if len(new) != 1 or len(old) != 1 or nodes.root_spec(new[0]) is not new[0]:
        return False
    return _layout(new[0]) == _layout(old[0]) and all(s.is_static_shape_tensor for s in (new[0], old[0]))


def _layout(spec: TensorSpec) -> tuple[object, ...]:
    return spec.dtype, tuple(spec.shape), tuple(int(d) for d in spec.dim_order)


def _shows(node: Node, value: Node) -> bool:
    """Is the node a view of the value, or a view of a view of it?"""
    while node.target is memory.view and isinstance(base := node.args[0], Node):
        if base is value:
            return True
        node = base
    return False


def _uses(node: Node) -> list[Node]:
    """The nodes that read a value, itself or through views of it, in no order."""
    out: list[Node] = []
    todo = [node]
    while todo:
        for user in todo.pop().users:
            (todo if user.target is memory.view else out).append(user)
    return out
