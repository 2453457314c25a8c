"""What both readers of a graph need to know of ExecuTorch's nodes and specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from executorch.exir import memory
from executorch.exir.control_flow import while_loop
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.tensor import TensorSpec
from torch.export import ExportGraphSignature
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from planner.program.tensor_layout import TensorLayout
from planner.program.views import View, copied_by

CONTROL_FLOW = (
    torch.ops.higher_order.cond,
    torch.ops.higher_order.map_impl,
    torch.ops.higher_order.scan,
    while_loop,
)


def specs_of(node: Node) -> list[TensorSpec]:
    """The tensor specs of a node's result, flattened."""
    return [s for s in tree_leaves(node.meta.get("spec")) if isinstance(s, TensorSpec)]


def root_spec(spec: TensorSpec) -> TensorSpec:
    """The spec that owns the bytes: a view's spec refers to its base's."""
    while (base := spec.__dict__.get("_base")) is not None:
        spec = base
    return spec


def leaves(*trees: Any) -> list[Node]:
    """The nodes among (nested) arguments."""
    return [x for x in tree_leaves(list(trees)) if isinstance(x, Node)]


def is_delegate(node: Node) -> bool:
    """Does the node call a delegate?"""
    return node.target is executorch_call_delegate


def is_alloc(node: Node) -> bool:
    """Is it an allocation: no instruction?"""
    return node.target is memory.alloc


def is_control_flow(node: Node) -> bool:
    """Does the node run submodules?"""
    return node.op == "call_function" and node.target in CONTROL_FLOW


def returns_branch_memory(node: Node) -> bool:
    """Do the node's results lie where a branch left them? (cond moves pointers; map and scan copy.)"""
    return node.target is torch.ops.higher_order.cond


def backend_of(module: GraphModule, node: Node) -> str:
    """Id of the backend that a delegate call goes to."""
    lowered: Any = node.args[0]
    return str(getattr(module, lowered.target).backend_id)


def branches(module: GraphModule, node: Node) -> Iterator[GraphModule]:
    """The submodules that a control-flow node runs."""
    for arg in leaves(node.args):
        if arg.op == "get_attr" and isinstance(sub := getattr(module, str(arg.target), None), GraphModule):
            yield sub


def stale_output_specs(output: Node) -> list[tuple[Node, TensorSpec]]:
    """Arguments of the output node for which it keeps another spec than theirs, with that spec."""
    arguments, kept = tree_leaves(output.args), tree_leaves(output.meta.get("spec"))
    if len(arguments) != len(kept):
        return []
    return [
        (a, s)
        for a, s in zip(arguments, kept, strict=True)
        if isinstance(a, Node)
        and isinstance(s, TensorSpec)
        and isinstance(a.meta.get("spec"), TensorSpec)
        and a.meta["spec"] is not s
    ]


def integer_argument(node: Node, position: int, name: str, default: int) -> int:
    """An integer argument, given by position or by name."""
    value: Any = node.kwargs.get(name, node.args[position] if position < len(node.args) else default)
    return int(value)


def operands(node: Node) -> list[Node]:
    """The nodes that an op is given, without submodules and the allocations it writes to."""
    return [n for n in leaves(node.args, node.kwargs) if n.op != "get_attr" or specs_of(n)]


def written_arguments(node: Node) -> tuple[list[Node], list[Node]]:
    """By the operator's schema: the nodes of its out arguments, and those of arguments written in place."""
    out: list[Node] = []
    in_place: list[Node] = []
    target = overload_of(node.target)
    if target is None:
        return out, in_place
    for position, arg in enumerate(target._schema.arguments):
        if arg.alias_info is None or not arg.alias_info.is_write:
            continue
        given = node.kwargs.get(arg.name, node.args[position] if position < len(node.args) else None)
        (out if arg.is_out else in_place).extend(leaves(given))
    return out, in_place


def overload_of(target: Any) -> torch._ops.OpOverload | None:
    """The overload that a node's target is, or that the edge op wraps; an overload has an ``_op`` of its own."""
    if not isinstance(target, torch._ops.OpOverload):
        target = getattr(target, "_op", None)
    return target if isinstance(target, torch._ops.OpOverload) else None


def operator_name(op: torch._ops.OpOverload) -> str:
    """An overload's name in a program: ``aten::add.out``."""
    return f"{op._schema.name}.{op._schema.overload_name}" if op._schema.overload_name else str(op._schema.name)


def view_of(node: Node) -> View | None:
    """What a node copies, if that is all that it does; None else, or if an argument is not known at export."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return None
    names = [a.name for a in target._schema.arguments]
    given = [node.args[k] if k < len(node.args) else node.kwargs.get(name) for k, name in enumerate(names)]
    known = lambda x: layouts_of(x) if isinstance(x, Node) else []  # noqa: E731
    return copied_by(operator_name(target), given, known, layouts_of(node))


def layouts_of(node: Node) -> list[TensorLayout]:
    """How the tensors of a node's result lie in memory."""
    return [layout_of(s) for s in specs_of(node)]


def layout_of(spec: TensorSpec) -> TensorLayout:
    """How a tensor lies in memory."""
    return TensorLayout(
        str(spec.dtype).removeprefix("torch."),
        spec.dtype.itemsize,
        tuple(int(n) for n in spec.shape),
        tuple(int(d) for d in spec.dim_order),
        bool(spec.is_static_shape_tensor),
    )


def mutable_buffers(signature: ExportGraphSignature | None) -> set[str]:
    """Names of the placeholders that hold mutable buffers."""
    if signature is None:
        return set()
    mutated = set(signature.buffers_to_mutate.values())
    return {name for name, fqn in signature.inputs_to_buffers.items() if fqn in mutated}
