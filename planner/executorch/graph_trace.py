"""From an ExecuTorch graph to a `Trace` for the replay: what each instruction reads and writes, and where.

Taken from operator schemas and specs alone. What a concat or a view does to bytes is derived from strides.
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
from planner.executorch.in_place import tolerant_operands
from planner.judge import moves
from planner.judge.memory import Place, Ref, ReplayError, judging
from planner.judge.replay import Move, Step, Trace


def trace(
    module: GraphModule,
    signature: ExportGraphSignature | None,
    without: Collection[str] = (),
    control_flow_memory: bool = True,
    elsewhere: bool = False,
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
    elsewhere : bool
        Inputs and results lie in memory of their own. So they may in a branch: what stock plans for an input may be the
        caller's tensor in truth; and cond hands on its result's tensor and not its bytes, so that where a caller gives
        the memory of an output, the branch's tensor has got it in the next run.

    Returns
    -------
    Trace

    Raises
    ------
    ReplayError
        At an op that is not what it says; `UnjudgedError` at one that cannot be read.
    """
    tracer = _Tracer(module, control_flow_memory)
    if elsewhere:
        ends = [n for n in module.graph.nodes if n.op == "placeholder"]
        ends += [n for o in module.graph.nodes if o.op == "output" for n in nodes.leaves(o.args)]
        own = (s for n in ends for s in nodes.specs_of(n))
        tracer.moved_to |= {id(s): (None,) for s in own if nodes.root_spec(s) is s}
    inputs, outputs, state, steps = [], [], [], []
    mutable = nodes.mutable_buffers(signature)
    for node in module.graph.nodes:
        with judging(node.name):
            if node.op == "placeholder":
                refs = [tracer.ref(s, node.name) for s in nodes.specs_of(node)]
                inputs += refs
                if node.target in mutable:
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
        self.moved_to: dict[int, tuple[Place | None, ...]] = {}  # results of cond: where the branches left them

    def ref(self, spec: TensorSpec, name: str) -> Ref:
        root = nodes.root_spec(spec)
        places = self.moved_to.get(id(spec), (_place(root),))  # a view stays at the address planned for its base
        return Ref(name, id(root), int(spec.nbytes()), places)

    def refs(self, node: Node) -> list[Ref]:
        return [self.ref(s, node.name) for s in nodes.specs_of(node)]

    def step(self, node: Node) -> Step | None:
        """The instruction of a node, or None if it has none."""
        if node.target is operator.getitem:
            _check_item(node)
        if node.target in (operator.getitem, memory.alloc, memory.view, memory.free):
            return None
        out, in_place = nodes.written_arguments(node)
        _check_out(node, out)
        if nodes.is_control_flow(node) and self.control_flow_memory:
            return self._control_flow(node)
        read_nodes = [n for n in nodes.operands(node) if n not in out and n not in in_place]
        reads = [r for n in read_nodes for r in self.refs(n)]
        mutates = [r for n in in_place for r in self.refs(n)]
        writes = [] if in_place else self.refs(node)
        if not (reads or writes or mutates):
            return None
        moved = self._moved(node, reads)
        if moved is None and node.target is torch.ops.aten.copy_.default:
            moved = _write_back(node)
            if moved is not None:
                writes, mutates = mutates, []
        exact = tolerant_operands(node)
        elementwise = tuple(k for k, n in enumerate(read_nodes) if n in exact and _alike(n, node))
        if len(read_nodes) != len(reads):
            elementwise = ()
        return Step(node.name, tuple(reads), tuple(writes), tuple(mutates), moved, elementwise)

    def _moved(self, node: Node, reads: Sequence[Ref]) -> tuple[Move, ...] | None:
        """What a node copies, if that is all that it does and every result comes out of one piece."""
        if node.target is torch.ops.aten.cat.out:
            parts = [t for n in nodes.leaves(node.args[0]) for t in nodes.layouts_of(n)]
            return moves.concatenated(parts, nodes.layouts_of(node), nodes.integer_argument(node, 1, "dim", 0))
        view = nodes.view_of(node)
        if view is None:
            return None
        read = [r.name for r in reads].index(view.source.name)
        return moves.cut_out(view, nodes.layouts_of(view.source), nodes.layouts_of(node), read)

    def _control_flow(self, node: Node) -> Step:
        reads = tuple(r for n in nodes.operands(node) for r in self.refs(n))
        scratch: dict[int, tuple[int, int]] = {}
        for sub in nodes.branches(self.module, node):
            for spec in _all_specs(sub):
                if spec.mem_id is not None and spec.mem_offset is not None and not spec.const:
                    low, high = scratch.get(spec.mem_id, (spec.mem_offset, spec.mem_offset))
                    end = spec.mem_offset + int(spec.nbytes())
                    scratch[spec.mem_id] = (min(low, spec.mem_offset), max(high, end))
        if nodes.returns_branch_memory(node):
            ways = _ways_out(self.module, node)
            for k, spec in enumerate(nodes.specs_of(node)):
                self.moved_to[id(spec)] = tuple(way[k] for way in ways)
        writes = tuple(self.refs(node))
        ranges = tuple((arena, low, high) for arena, (low, high) in scratch.items())
        return Step(node.name, reads, writes, scratch=ranges)


Way = list["Place | None"]


def _ways_out(module: GraphModule, cond: Node) -> list[Way]:
    """Where the results of a cond lie, for every branch; where one returns the result of a cond inside it, for every
    branch of that."""
    ways: list[Way] = []
    for sub in nodes.branches(module, cond):
        inside = {n: _ways_out(sub, n) for n in sub.graph.nodes if nodes.returns_branch_memory(n)}
        output = next(n for n in sub.graph.nodes if n.op == "output")
        for k in range(max(map(len, inside.values()), default=1)):
            moved = {
                id(spec): place
                for n, inner in inside.items()
                for spec, place in zip(nodes.specs_of(n), inner[min(k, len(inner) - 1)], strict=True)
            }
            returned = [s for n in nodes.leaves(output.args) for s in nodes.specs_of(n)]
            ways.append([moved[id(s)] if id(s) in moved else _place(nodes.root_spec(s)) for s in returned])
    return ways


def _check_item(node: Node) -> None:
    """Raise `ReplayError` unless the node's tensor is the item that the emitter would take."""
    items, index = node.args[0], node.args[1]
    given = items[index] if isinstance(items, list | tuple) and isinstance(index, int) else None
    if isinstance(items, Node) and isinstance(items.meta.get("spec"), list | tuple):
        found = [items.meta["spec"][index]]  # type: ignore[index]
    else:
        found = nodes.specs_of(given) if isinstance(given, Node) else nodes.specs_of(node)
    if [id(s) for s in found if isinstance(s, TensorSpec)] != [id(s) for s in nodes.specs_of(node)]:
        raise ReplayError(f"{node.name!r} is not item {index} of what it is taken from")


def _check_out(node: Node, out: Sequence[Node]) -> None:
    """Raise `ReplayError` unless an op writes to the tensors that stand for its results."""
    given = [id(s) for n in out for s in nodes.specs_of(n)]
    if given and given != [id(s) for s in nodes.specs_of(node)]:
        raise ReplayError(f"op {node.name!r} writes to other tensors than its results")


def _place(spec: TensorSpec) -> Place | None:
    return None if spec.mem_id is None or spec.mem_offset is None else (int(spec.mem_id), int(spec.mem_offset))


def _write_back(node: Node) -> tuple[Move, ...] | None:
    """What ``copy_`` moves, if the two tensors are laid out alike; onto itself it moves nothing."""
    target, value = node.args[0], node.args[1]
    if not isinstance(target, Node) or not isinstance(value, Node) or value is target or not _alike(value, target):
        return None
    (spec,) = nodes.specs_of(value)
    return (Move(0, 0, 0, 0, int(spec.nbytes())),)


def _alike(one: Node, other: Node) -> bool:
    """Have the two nodes one tensor each, of one dtype, shape and layout?"""
    layouts = [*nodes.layouts_of(one), *nodes.layouts_of(other)]
    return len(layouts) == 2 and layouts[0].alike(layouts[1])


def _all_specs(module: GraphModule) -> Sequence[TensorSpec]:
    """Every spec of a module and of the modules inside it."""
    return [
        nodes.root_spec(s)
        for sub in module.modules()
        if isinstance(sub, GraphModule)
        for n in sub.graph.nodes
        if n.op in ("call_function", "placeholder")
        for s in nodes.specs_of(n)
    ]
