"""Ops that only copy bytes of one operand: what they copy, by their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from planner.program.tensor_layout import TensorLayout


@dataclass(frozen=True)
class View:
    """A copy that could be a view.

    Attributes
    ----------
    source : Any
        The operand that is copied: what stands for a tensor in the program.
    axis : int or None
        The dimension that is cut; None for a reshape, where only dimensions of extent 1 come or go.
    starts : tuple of int
        Index along the axis at which each result starts.
    drops_axis : bool
        The results lack the dimension.
    """

    source: Any
    axis: int | None = None
    starts: tuple[int, ...] = (0,)
    drops_axis: bool = False


def copied_by(
    operator: str,
    given: Sequence[Any],
    layouts_of: Callable[[Any], Sequence[TensorLayout]],
    outs: Sequence[TensorLayout],
) -> View | None:
    """What a call copies, if that is all that it does; None else, or if an argument is not known.

    Parameters
    ----------
    operator : str
        An out overload as the runtime names it, ``aten::slice_copy.Tensor_out``.
    given : sequence
        Its arguments in the schema's order; None where not given.
    layouts_of : callable
        The tensors that an argument stands for.
    outs : sequence of TensorLayout
        The results.
    """
    if operator not in _RESHAPES and operator not in _CUTS:
        return None
    source = given[1 if operator == "aten::copy.out" else 0]
    before = layouts_of(source)
    if len(before) != 1:
        return None
    if operator in _RESHAPES:
        return View(source) if len(outs) == 1 and _keeps_order(operator, given, before[0], outs[0]) else None
    found = _CUTS[operator](given, list(before[0].shape)) if before[0].shape else None
    if found is None or len(found[1]) != len(outs):
        return None
    axis, starts, drops_axis = found
    return View(source, axis, tuple(starts), drops_axis)


Cut = tuple[int, Sequence[int], bool]  # axis, starts, drops_axis


def _slice(given: Sequence[Any], shape: list[int]) -> Cut | None:
    _, axis, start, _, step = given[:5]
    axis, step = axis or 0, 1 if step is None else step
    if step != 1 or not isinstance(axis, int) or not (start is None or isinstance(start, int)):
        return None
    return axis % len(shape), (_index(start or 0, shape[axis]),), False


def _narrow(given: Sequence[Any], shape: list[int]) -> Cut | None:
    _, axis, start = given[:3]
    if not isinstance(axis, int) or not isinstance(start, int):
        return None
    return axis % len(shape), (_index(start, shape[axis]),), False


def _select(given: Sequence[Any], shape: list[int]) -> Cut | None:
    _, axis, index = given[:3]
    if not isinstance(axis, int) or not isinstance(index, int):
        return None
    return axis % len(shape), (index % shape[axis],), True


def _unbind(given: Sequence[Any], shape: list[int]) -> Cut | None:
    axis = int(given[1] or 0) % len(shape)
    return axis, range(shape[axis]), True


def _split(given: Sequence[Any], shape: list[int]) -> Cut | None:
    size, axis = given[1], int(given[2] or 0) % len(shape)
    if not isinstance(size, int) or size < 1 or not shape[axis]:
        return None
    return axis, range(0, shape[axis], size), False


def _split_with_sizes(given: Sequence[Any], shape: list[int]) -> Cut | None:
    sizes, axis = given[1] or (), int(given[2] or 0) % len(shape)
    if not all(isinstance(n, int) for n in sizes):
        return None
    return axis, tuple(accumulate(sizes, initial=0))[:-1], False


def _index(start: int, extent: int) -> int:
    return min(max(start + extent if start < 0 else start, 0), extent)


def _keeps_order(operator: str, given: Sequence[Any], before: TensorLayout, out: TensorLayout) -> bool:
    """Is the result the operand's elements in the same logical order, but for dimensions of extent 1?"""
    if before.dtype != out.dtype or _real_extents(before) != _real_extents(out):
        return False
    if operator != "aten::permute_copy.out":
        return True
    rank = len(before.shape)
    real = [d % rank for d in given[1] or () if before.shape[d] != 1]
    return real == sorted(real)


def _real_extents(layout: TensorLayout) -> list[int]:
    """The extents that are not 1, in logical order."""
    return [n for n in layout.shape if n != 1]


_RESHAPES = frozenset(
    {
        "aten::alias_copy.out",
        "aten::clone.out",
        "aten::copy.out",
        "aten::detach_copy.out",
        "aten::expand_copy.out",
        "aten::permute_copy.out",
        "aten::squeeze_copy.dim_out",
        "aten::squeeze_copy.dims_out",
        "aten::squeeze_copy.out",
        "aten::unsqueeze_copy.out",
        "aten::view_copy.out",
        "dim_order_ops::_clone_dim_order.out",
        "dim_order_ops::_to_dim_order_copy.out",
    }
)

_CUTS: dict[str, Callable[[Sequence[Any], list[int]], Cut | None]] = {
    "aten::narrow_copy.out": _narrow,
    "aten::select_copy.int_out": _select,
    "aten::slice_copy.Tensor_out": _slice,
    "aten::split_copy.Tensor_out": _split,
    "aten::split_with_sizes_copy.out": _split_with_sizes,
    "aten::unbind_copy.int_out": _unbind,
}
