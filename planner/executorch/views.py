"""Ops that only copy bytes of one operand: what they copy, by their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from executorch.exir.tensor import TensorSpec
from torch.fx import Node

from planner.executorch import nodes

aten = torch.ops.aten
dim_order_ops = torch.ops.dim_order_ops


@dataclass(frozen=True)
class View:
    """A copy that could be a view.

    Attributes
    ----------
    source : Node
        The operand that is copied.
    axis : int or None
        The dimension that is cut; None for a reshape, where only dimensions of extent 1 come or go.
    starts : tuple of int
        Index along the axis at which each result starts.
    drops_axis : bool
        The results lack the dimension.
    """

    source: Node
    axis: int | None = None
    starts: tuple[int, ...] = (0,)
    drops_axis: bool = False


def view_of(node: Node) -> View | None:
    """What a node copies, if that is all that it does; None else, or if an argument is not known at export."""
    target: Any = node.target
    if target in _RESHAPES:
        position = 1 if target is aten.copy.out else 0
        source = node.args[position] if position < len(node.args) else None
        if not isinstance(source, Node) or not _keeps_order(node, source):
            return None
        return View(source)
    cut = _CUTS.get(target)
    if cut is None or not isinstance(source := node.args[0], Node):
        return None
    specs = nodes.specs_of(source)
    if len(specs) != 1 or not specs[0].shape:
        return None
    return cut(node, source, [int(n) for n in specs[0].shape])


def _argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    return node.kwargs.get(name, node.args[position] if position < len(node.args) else default)


def _slice(node: Node, source: Node, shape: list[int]) -> View | None:
    axis, start, step = (_argument(node, k, name, d) for k, name, d in ((1, "dim", 0), (2, "start", 0), (4, "step", 1)))
    if step != 1 or not isinstance(axis, int) or not (start is None or isinstance(start, int)):
        return None
    return View(source, axis % len(shape), (_index(start or 0, shape[axis]),))


def _narrow(node: Node, source: Node, shape: list[int]) -> View | None:
    axis, start = _argument(node, 1, "dim"), _argument(node, 2, "start")
    if not isinstance(axis, int) or not isinstance(start, int):
        return None
    return View(source, axis % len(shape), (_index(start, shape[axis]),))


def _select(node: Node, source: Node, shape: list[int]) -> View | None:
    axis, index = _argument(node, 1, "dim"), _argument(node, 2, "index")
    if not isinstance(axis, int) or not isinstance(index, int):
        return None
    return View(source, axis % len(shape), (index % shape[axis],), drops_axis=True)


def _unbind(node: Node, source: Node, shape: list[int]) -> View | None:
    axis = int(_argument(node, 1, "dim", 0)) % len(shape)
    return View(source, axis, tuple(range(shape[axis])), drops_axis=True)


def _split(node: Node, source: Node, shape: list[int]) -> View | None:
    size, axis = _argument(node, 1, "split_size"), int(_argument(node, 2, "dim", 0)) % len(shape)
    if not isinstance(size, int) or not shape[axis]:
        return None
    return View(source, axis, tuple(range(0, shape[axis], size)))


def _split_with_sizes(node: Node, source: Node, shape: list[int]) -> View | None:
    sizes = _argument(node, 1, "split_sizes", ())
    axis = int(_argument(node, 2, "dim", 0)) % len(shape)
    if not all(isinstance(n, int) for n in sizes):
        return None
    return View(source, axis, tuple(accumulate(sizes, initial=0))[:-1])


def _index(start: int, extent: int) -> int:
    return min(max(start + extent if start < 0 else start, 0), extent)


def _keeps_order(node: Node, source: Node) -> bool:
    """Is the result the operand's elements in the same logical order, but for dimensions of extent 1?"""
    (out,), before = nodes.specs_of(node), nodes.specs_of(source)
    if len(before) != 1 or before[0].dtype != out.dtype or _real_extents(before[0]) != _real_extents(out):
        return False
    if node.target is not aten.permute_copy.out:
        return True
    rank = len(before[0].shape)
    order = _argument(node, 1, "dims", ())
    real = [d % rank for d in order if int(before[0].shape[d]) != 1]
    return real == sorted(real)


def _real_extents(spec: TensorSpec) -> list[int]:
    """The extents that are not 1, in logical order."""
    return [int(n) for n in spec.shape if n != 1]


_RESHAPES = frozenset(
    {
        aten.alias_copy.out,
        aten.clone.out,
        aten.copy.out,
        aten.detach_copy.out,
        aten.expand_copy.out,
        aten.permute_copy.out,
        aten.squeeze_copy.dim_out,
        aten.squeeze_copy.dims_out,
        aten.squeeze_copy.out,
        aten.unsqueeze_copy.out,
        aten.view_copy.out,
        dim_order_ops._clone_dim_order.out,
        dim_order_ops._to_dim_order_copy.out,
    }
)

_CUTS: dict[Any, Callable[[Node, Node, list[int]], View | None]] = {
    aten.narrow_copy.out: _narrow,
    aten.select_copy.int_out: _select,
    aten.slice_copy.Tensor_out: _slice,
    aten.split_copy.Tensor_out: _split,
    aten.split_with_sizes_copy.out: _split_with_sizes,
    aten.unbind_copy.int_out: _unbind,
}
