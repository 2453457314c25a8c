"""Which bytes a concat or a view moves, derived from strides; for the replay."""

from __future__ import annotations

from collections.abc import Sequence

from planner.judge.replay import Move
from planner.program.tensor_layout import TensorLayout
from planner.program.views import View


def concatenated(parts: Sequence[TensorLayout], outs: Sequence[TensorLayout], dim: int) -> tuple[Move, ...] | None:
    """What a concat moves, if its parts land in one piece each.

    Parameters
    ----------
    parts : sequence of TensorLayout
        In the order of the reads.
    outs : sequence of TensorLayout
        The one result.
    dim : int
    """
    (out,) = outs
    moved, along, total = [], 0, 0
    if not all(t.static for t in (out, *parts)):
        return None
    for k, part in enumerate(parts):
        if part.nbytes == 0:
            continue
        axis = dim % len(part.shape)
        if part.dtype != out.dtype or not _same_strides(part, out, range(len(part.shape))):
            return None
        moved.append(Move(k, 0, 0, along * out.strides[axis] * out.itemsize, part.nbytes))
        along += part.shape[axis]
        total += part.nbytes
    return tuple(moved) if total == out.nbytes else None


def cut_out(
    view: View, sources: Sequence[TensorLayout], outs: Sequence[TensorLayout], read: int = 0
) -> tuple[Move, ...] | None:
    """What a view moves, if every result comes out of the one source in one piece.

    ``read`` is the source's position among the reads.
    """
    if len(sources) != 1 or not all(t.static for t in (*sources, *outs)) or len(outs) != len(view.starts):
        return None
    moved = []
    for k, (out, start) in enumerate(zip(outs, view.starts, strict=True)):
        at = _cut_from(sources[0], out, view, start)
        if at is None:
            return None
        moved.append(Move(read, at, k, 0, out.nbytes))
    return tuple(moved)


def _cut_from(source: TensorLayout, out: TensorLayout, view: View, start: int) -> int | None:
    """Where in the source's bytes a result lies in one piece; None if it does not."""
    if source.dtype != out.dtype:
        return None
    if out.nbytes == 0:
        return 0
    if view.axis is None:
        before = [(n, s) for n, s in zip(source.shape, source.strides, strict=True) if n != 1]
        after = [(n, s) for n, s in zip(out.shape, out.strides, strict=True) if n != 1]
        return 0 if before == after else None
    lies_in = [d for d in range(len(source.shape)) if not (view.drops_axis and d == view.axis)]
    if not _same_strides(out, source, lies_in):
        return None
    return start * source.strides[view.axis] * source.itemsize


def _same_strides(inner: TensorLayout, outer: TensorLayout, dimensions: Sequence[int]) -> bool:
    """Are neighbours in ``inner`` neighbours in ``outer``? ``dimensions`` maps the dimensions of ``inner``."""
    into = outer.strides
    return all(n == 1 or s == into[d] for n, s, d in zip(inner.shape, inner.strides, dimensions, strict=True))
