"""From an ExecuTorch graph to a `Trace` for the replay: what each instruction reads and writes, and where.

Taken from operator schemas and specs alone. What a concat does to bytes is derived from strides.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence

import torch
from executorch.exir import memory
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule, Node

from planner.executorch import nodes
from planner.replay import Place, Ref, Step, Trace


def trace(
    module: GraphModule,
    signature: ExportGraphSignature | None,
    without: Collection[str] = (),
    control_flow_memory: bool = True,
) -> Trace:
    """Read the instructions of a graph.

    Parameters
    ----------
    module : GraphModule
    signature : ExportGraphSignature or None
    without : collection of str
        Names of nodes that are about to be erased.
    control_flow_memory : bool
        Also read where branches put their results and what they may overwrite; they must have been planned.

    Returns
    -------
    Trace
    """
    tracer = _Tracer(module, control_flow_memory)
    inputs, outputs, state, steps = [], [], [], []
    mutable = set(signature.buffers_to_mutate.values()) if signature else set()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            refs = [tracer.ref(s, node.name) for s in nodes.specs_of(node)]
            inputs += refs
            if signature and signature.inputs_to_buffers.get(str(node.target)) in mutable:
                state += refs
        elif node.op == "output":
            outputs = [r for n in nodes.leaves(node.args) for r in tracer.refs(n)]
        elif node.op == "call_function" and node.name not in without and (step := tracer.step(node)):
            steps.append(step)
    return Trace(tuple(inputs), tuple(steps), tuple(outputs), tuple(state))


class _Tracer:
    def __init__(self, module: GraphModule, control_flow_memory: bool) -> None:
        self.module = module
        self.control_flow_memory = control_flow_memory
        self.moved_to: dict[int, tuple[Place, ...]] = {}  # results of cond: where the branches left them

    def ref(self, spec: TensorSpec, name: str) -> Ref:
        root = nodes.root_spec(spec)
        if id(root) in self.moved_to:
            places: tuple[Place, ...] = self.moved_to[id(root)]
        elif root.mem_id is None or root.mem_offset is None:
            places = ()
        else:
            places = ((int(root.mem_id), int(root.mem_offset)),)
        return Ref(name, id(root), int(spec.nbytes()), places)

    def refs(self, node: Node) -> list[Ref]:
        return [self.ref(s, node.name) for s in nodes.specs_of(node)]

    def step(self, node: Node) -> Step | None:
        """The instruction of a node, or None if it has none."""
        if node.target in (operator.getitem, memory.alloc, memory.view, memory.free):
            return None
        out, in_place = nodes.written_arguments(node)
        if nodes.is_control_flow(node) and self.control_flow_memory:
            return self._control_flow(node)
        reads = [r for n in nodes.operands(node) if n not in out and n not in in_place for r in self.refs(n)]
        mutates = [r for n in in_place for r in self.refs(n)]
        writes = [] if in_place else self.refs(node)
        if not (reads or writes or mutates):
            return None
        moved = self._moved(node) if node.target is torch.ops.aten.cat.out else None
        return Step(node.name, tuple(reads), tuple(writes), tuple(mutates), moved)

    def _moved(self, node: Node) -> tuple[tuple[int, int], ...] | None:
        """For a concat whose parts land in one piece each: their byte offsets and lengths in the result."""
        (out,) = nodes.specs_of(node)
        dim = nodes.integer_argument(node, 1, "dim", 0)
        moved, along = [], 0
        for n in nodes.leaves(node.args[0]):
            (part,) = nodes.specs_of(n)
            if part.nbytes() == 0:
                moved.append((0, 0))
                continue
            shape, into = [int(x) for x in part.shape], _strides(out)
            axis = dim % len(shape)
            steps = [(x, s, t) for x, s, t in zip(shape, _strides(part), into, strict=True) if x > 1]
            if part.dtype != out.dtype or any(s != t for _, s, t in steps):
                return None
            size = torch.empty((), dtype=part.dtype).element_size()
            moved.append((along * into[axis] * size, int(part.nbytes())))
            along += shape[axis]
        return tuple(moved) if sum(n for _, n in moved) == int(out.nbytes()) else None

    def _control_flow(self, node: Node) -> Step:
        reads = tuple(r for n in nodes.operands(node) for r in self.refs(n))
        scratch: dict[int, tuple[int, int]] = {}
        returned: list[list[TensorSpec]] = []
        for sub in nodes.branches(self.module, node):
            for spec in _all_specs(sub):
                if spec.mem_id is not None and spec.mem_offset is not None and not spec.const:
                    low, high = scratch.get(spec.mem_id, (spec.mem_offset, spec.mem_offset))
                    end = spec.mem_offset + int(spec.nbytes())
                    scratch[spec.mem_id] = (min(low, spec.mem_offset), max(high, end))
            output = next(n for n in sub.graph.nodes if n.op == "output")
            returned.append([nodes.root_spec(s) for n in nodes.leaves(output.args) for s in nodes.specs_of(n)])
        own = nodes.specs_of(node)
        if nodes.returns_branch_memory(node):
            for k, spec in enumerate(own):
                places = {(s[k].mem_id, s[k].mem_offset) for s in returned if s[k].mem_offset is not None}
                self.moved_to[id(spec)] = tuple(sorted(places))
        writes = tuple(self.refs(node))
        ranges = tuple((arena, low, high) for arena, (low, high) in scratch.items())
        return Step(node.name, reads, writes, (), None, ranges)


def _strides(spec: TensorSpec) -> list[int]:
    """Elements between neighbours along each dimension of a dense tensor, from its dim_order."""
    strides = [0] * len(spec.shape)
    step = 1
    for d in reversed([int(d) for d in spec.dim_order]):
        strides[d] = step
        step *= int(spec.shape[d])
    return strides


def _all_specs(module: GraphModule) -> Sequence[TensorSpec]:
    """Every spec of a module and of the modules inside it; those of their inputs belong to the caller."""
    return [
        nodes.root_spec(s)
        for sub in module.modules()
        if isinstance(sub, GraphModule)
        for n in sub.graph.nodes
        if n.op == "call_function"
        for s in nodes.specs_of(n)
    ]
