"""Copies put into a graph: a tensor's twin, and the instruction that fills it."""

from __future__ import annotations

from typing import Any

import torch
from executorch.exir import memory
from executorch.exir.tensor import TensorSpec
from torch.fx import Graph, Node


def twin(spec: TensorSpec) -> TensorSpec:
    """A new tensor with the dtype, shape and layout of another, not placed."""
    made = TensorSpec(spec.dtype, torch.Size(spec.shape))
    made.stride, made.dim_order = spec.stride, spec.dim_order
    made.device, made.device_index = spec.device, spec.device_index
    made.realign(1)
    return made


def add_call(graph: Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: TensorSpec) -> Node:
    """A node at the insertion point, with its spec."""
    node = graph.call_function(target, args, kwargs)
    node.meta["spec"] = spec
    node.meta["val"] = torch.empty(tuple(spec.shape), dtype=spec.dtype, device="meta")
    return node


def add_clone(graph: Graph, source: Node, into: TensorSpec) -> list[Node]:
    """Copy ``source`` into a new tensor at the insertion point.

    Returns
    -------
    list of Node
        The new nodes, the copy last.
    """
    alloc = add_call(graph, memory.alloc, ((tuple(into.shape), into.dtype),), {}, into)
    dim_order = [int(d) for d in into.dim_order]
    if dim_order == list(range(len(dim_order))):
        copy = add_call(graph, torch.ops.aten.clone.out, (source,), {"out": alloc}, into)
    else:  # plain clone knows only the usual layout
        target = torch.ops.dim_order_ops._clone_dim_order.out
        copy = add_call(graph, target, (source,), {"dim_order": dim_order, "out": alloc}, into)
    return [alloc, copy]
