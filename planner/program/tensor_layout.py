"""How a dense tensor lies in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TensorLayout:
    """A dense tensor without its bytes.

    Attributes
    ----------
    dtype : str
        As torch names it, ``float32``.
    itemsize : int
        Bytes of an element.
    shape : tuple of int
        Extents; upper bounds if not ``static``.
    dim_order : tuple of int
        Dimensions from the outermost in memory to the innermost.
    static : bool
        Is the shape fixed?
    """

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    static: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes; at most, if the shape is not fixed."""
        return math.prod(self.shape) * self.itemsize

    @property
    def strides(self) -> list[int]:
        """Elements between neighbours along each dimension."""
        out = [0] * len(self.shape)
        step = 1
        for d in reversed(self.dim_order):
            out[d] = step
            step *= self.shape[d]
        return out

    @property
    def is_complex(self) -> bool:
        """Are the elements complex numbers?"""
        return self.dtype.startswith("complex")

    def alike(self, other: TensorLayout) -> bool:
        """Has another tensor the same dtype, shape and strides, both shapes fixed?"""
        same = (self.dtype, self.shape, self.strides) == (other.dtype, other.shape, other.strides)
        return same and self.static and other.static
