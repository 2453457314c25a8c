"""From an ExecuTorch graph, ready for memory planning, to a `Dataflow`."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from executorch.exir import memory
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule, Node

from planner.api import PlanningError
from planner.executorch import nodes
from planner.executorch.in_place import tolerant_operands
from planner.program.dataflow import Dataflow, Op, OpKind, Role, Tensor

RELAXED_BACKENDS = frozenset({"XnnpackBackend"})
"""Delegates that were run on tensors at every element offset: theirs may be parts of others."""


@dataclass(frozen=True)
class ReadGraph:
    """A dataflow, and the ids of the tensors in it that a spec (by identity) lies in."""

    flow: Dataflow
    ids: Mapping[int, tuple[str, ...]]


def read_graph(
    module: GraphModule,
    specs: Sequence[TensorSpec],
    signature: ExportGraphSignature | None,
    alignment: int,
    regions: bool = True,
    branch: bool = False,
    relaxed_backends: Collection[str] = RELAXED_BACKENDS,
) -> ReadGraph:
    """Read a graph.

    Parameters
    ----------
    module : GraphModule
        After out-variants, specs and allocations are in place; its submodules are already planned.
    specs : sequence of TensorSpec
        The specs to place; all others are left alone.
    signature : ExportGraphSignature or None
        Tells which inputs are mutable buffers.
    alignment : int
        Bytes, of tensors that stand alone.
    regions : bool
        Give every control-flow op memory of its own for its branches. Otherwise they are someone else's business.
    branch : bool
        It is a submodule of control flow: its inputs are the caller's, its results the runtime's.
    relaxed_backends : collection of str
        Ids of backends whose tensors may lie at any element offset.

    Returns
    -------
    ReadGraph

    Raises
    ------
    planner.api.PlanningError
        If a spec is to be placed that belongs to nothing in the graph, or an op cannot be read.
    """
    reader = _Reader(module, {id(s): s for s in specs}, signature, alignment, regions, branch, relaxed_backends)
    for node in module.graph.nodes:
        try:
            reader.read(node)
        except Exception as error:
            raise PlanningError(f"op {node.name!r} cannot be read: {type(error).__name__}: {error}") from error
    for s in specs:
        if id(s) not in reader.ids:
            raise PlanningError(f"a tensor of shape {list(s.shape)} is to be planned, but no node of the graph has it")
    return reader.result()


class _Reader:
    def __init__(
        self,
        module: GraphModule,
        planned: Mapping[int, TensorSpec],
        signature: ExportGraphSignature | None,
        alignment: int,
        regions: bool,
        branch: bool,
        relaxed_backends: Collection[str],
    ) -> None:
        self.module = module
        self.planned = planned
        self.alignment = alignment
        self.regions = regions
        self.branch = branch
        self.relaxed = relaxed_backends
        self.state_inputs = nodes.mutable_buffers(signature)
        self.tensors: dict[str, Tensor] = {}
        self.ids: dict[int, tuple[str, ...]] = {}
        self.ops: list[Op] = []
        self.born: dict[str, int] = {}
        self.allocated: dict[int, int] = {}  # spec -> the step before which its memory is claimed
        self.outputs: list[str] = []
        self.kept: list[object] = []  # specs by identity must outlive the reader

    def read(self, node: Node) -> None:
        if node.op == "placeholder":
            for s in nodes.specs_of(node):
                self.tensor(s, node.name, self._role(node, s))
        elif node.op == "output":
            self._output(node)
        elif node.op != "call_function" or node.target in (operator.getitem, memory.free, memory.view):
            pass
        elif nodes.is_alloc(node):
            for s in nodes.specs_of(node):
                self.allocated[id(s)] = len(self.ops)
        elif nodes.is_control_flow(node):
            self._control_flow(node)
        elif nodes.is_delegate(node):
            self._delegate(node)
        else:
            self._operator(node)

    def result(self) -> ReadGraph:
        flow = Dataflow(self.ops, list(self.tensors.values()), self.outputs, self.born)
        for i in flow.mutated:  # written in place: its bytes must last, whatever the signature says
            if self.tensors[i].role in (Role.INPUT, Role.CONSTANT):
                self.tensors[i] = replace(self.tensors[i], role=Role.STATE)
        return ReadGraph(Dataflow(self.ops, list(self.tensors.values()), self.outputs, self.born), self.ids)

    def _role(self, node: Node, spec: TensorSpec) -> Role:
        if node.target in self.state_inputs or (spec.const and id(spec) in self.planned):
            return Role.STATE
        if spec.const:
            return Role.CONSTANT
        return Role.CALLER if self.branch else Role.INPUT

    def tensor(self, spec: TensorSpec, name: str, role: Role = Role.VALUE) -> tuple[str, ...]:
        """The ids of the tensors that a spec lies in; made on first sight, views with their base."""
        if id(spec) in self.ids:
            return self.ids[id(spec)]
        root = nodes.root_spec(spec)
        base = None
        if root is not spec:
            lies_in = self.tensor(root, f"{name}.base", role)
            if len(lies_in) != 1 or self.tensors[lies_in[0]].nbytes != spec.nbytes():
                return lies_in
            base = lies_in[0]
        name = _fresh(name, self.tensors)
        arena = None
        if id(root) in self.planned:
            arena = 1 if root.mem_id is None else int(root.mem_id)
        layout = nodes.layout_of(spec)
        self.tensors[name] = Tensor(
            name,
            int(spec.nbytes()),
            layout.dtype,
            layout.itemsize,
            layout.shape,
            layout.dim_order,
            role,
            arena,
            layout.static,
            self.alignment,
            base=base,
        )
        self.ids[id(spec)] = (name,)
        self.kept.append(spec)
        if id(spec) in self.allocated:
            self.born[name] = self.allocated[id(spec)]
        return (name,)

    def operand(self, node: Node) -> list[str]:
        """The tensor ids of an argument."""
        role = Role.CONSTANT if node.op == "get_attr" else Role.VALUE
        return [i for s in nodes.specs_of(node) for i in self.tensor(s, node.name, role)]

    def _output(self, node: Node) -> None:
        """What is returned must be there at the end.

        The node's own specs may be stale: for a buffer written in place, stock keeps one that nothing is ever
        written to. It stands for the argument's.
        """
        self.outputs = [i for n in nodes.leaves(node.args) for i in self.operand(n)]
        for i in self.outputs if self.branch else ():
            root = self.tensors[i].base or i
            if self.tensors[root].role is Role.VALUE:
                self.tensors[root] = replace(self.tensors[root], role=Role.RESULT)
        for argument, spec in nodes.stale_output_specs(node):
            self.ids.setdefault(id(spec), tuple(self.operand(argument)))

    def _results(self, node: Node) -> list[str]:
        specs = nodes.specs_of(node)
        names = [node.name] if len(specs) == 1 else [f"{node.name}.{k}" for k in range(len(specs))]
        return [i for s, name in zip(specs, names, strict=True) for i in self.tensor(s, name)]

    def _operator(self, node: Node) -> None:
        out, in_place = nodes.written_arguments(node)
        writes = self._results(node) if not in_place else []
        mutates = [i for n in in_place for i in self.operand(n)]
        read_nodes = [n for n in nodes.operands(node) if n not in out and not nodes.is_alloc(n)]
        reads = [i for n in read_nodes for i in self.operand(n)]
        if not (writes or mutates or reads):
            return
        op = Op(node.name, OpKind.OPAQUE, tuple(reads), tuple(writes), tuple(mutates), target=str(node.target))
        self.ops.append(self._concat(node, op) or self._view(node, op) or self._elementwise(node, op) or op)

    def _concat(self, node: Node, op: Op) -> Op | None:
        if node.target is not torch.ops.aten.cat.out or len(op.writes) != 1:
            return None
        parts = [self.operand(n) for n in nodes.leaves(node.args[0])]
        rank = len(self.tensors[op.writes[0]].shape)
        if not rank or any(len(p) != 1 for p in parts):
            return None
        axis = nodes.integer_argument(node, 1, "dim", 0) % rank
        return replace(op, kind=OpKind.CONCAT, reads=tuple(i for p in parts for i in p), axis=axis)

    def _view(self, node: Node, op: Op) -> Op | None:
        view = nodes.view_of(node)
        if view is None or len(op.writes) != len(view.starts):
            return None
        source = self.operand(view.source)
        if len(source) != 1:
            return None
        reads = tuple(dict.fromkeys((*source, *op.reads)))
        if view.axis is None:
            return replace(op, kind=OpKind.RESHAPE, reads=reads)
        return replace(
            op, kind=OpKind.SLICE, reads=reads, axis=view.axis, starts=view.starts, drops_axis=view.drops_axis
        )

    def _elementwise(self, node: Node, op: Op) -> Op | None:
        operands = [self.operand(n) for n in tolerant_operands(node)]
        tolerates = tuple(ids[0] for ids in operands if len(ids) == 1)
        return replace(op, tolerates=tolerates) if tolerates and len(op.writes) == 1 else None

    def _delegate(self, node: Node) -> None:
        reads = [i for n in nodes.operands(node) for i in self.operand(n)]
        writes = self._results(node)
        if nodes.backend_of(self.module, node) not in self.relaxed:
            for i in (*reads, *writes):
                root = self.tensors[i].base or i
                self.tensors[root] = replace(self.tensors[root], rigid=True)
        self.ops.append(Op(node.name, OpKind.OPAQUE, tuple(reads), tuple(writes), (), 0, "delegate"))

    def _control_flow(self, node: Node) -> None:
        reads = [i for n in nodes.operands(node) for i in self.operand(n)]
        regions = self._regions(node) if self.regions else []
        if nodes.returns_branch_memory(node) and regions:
            for s in nodes.specs_of(node):
                self.ids[id(s)] = tuple(regions)
            writes = regions
        else:
            writes = [*regions, *self._results(node)]
        self.ops.append(Op(node.name, OpKind.CONTROL_FLOW, tuple(reads), tuple(writes), (), 0, str(node.target)))

    def _regions(self, node: Node) -> list[str]:
        """One tensor per arena that the node's branches use."""
        sizes: dict[int, int] = {}
        for sub in nodes.branches(self.module, node):
            for arena, size in enumerate(sub.meta.get("non_const_buffer_sizes", [])):
                if size:
                    sizes[arena] = max(sizes.get(arena, 0), int(size))
        if nodes.returns_branch_memory(node):  # the node's own specs are never written, but must have a legal place
            for s in nodes.specs_of(node):
                arena = s.mem_id or 1
                sizes[arena] = max(sizes.get(arena, 0), int(s.nbytes()))
        out = []
        for arena, size in sizes.items():
            name = region_name(node, arena)
            self.tensors[name] = Tensor(
                name, size, "uint8", 1, (size,), (0,), Role.REGION, arena, alignment=self.alignment
            )
            out.append(name)
        return out


def region_name(node: Node, arena: int) -> str:
    """Id of the tensor that stands for the memory of a control-flow node's branches."""
    return f"{node.name} branches/{arena}"


def _fresh(name: str, taken: Collection[str]) -> str:
    candidate, n = name, 1
    while candidate in taken:
        candidate, n = f"{name}~{n}", n + 1
    return candidate
