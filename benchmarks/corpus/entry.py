"""A network of the corpus, and the ways in which it is exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

Made = tuple[torch.nn.Module, tuple[Any, ...]]
"""A model in eval mode and example inputs."""


class Variant(StrEnum):
    """How a network is exported."""

    PORTABLE = "portable"
    """Portable kernels, float32."""
    XNNPACK = "xnnpack"
    """What the XNNPACK partitioner takes is in delegates."""
    XNNPACK_NO_CONCAT = "xnnpack-no-concat"
    """As before, but for concats, which stay outside."""
    CHANNELS_LAST = "nhwc"
    """Model and images in channels_last."""
    INT8 = "int8"
    """PT2E quantisation, portable kernels."""
    INT8_XNNPACK = "int8-xnnpack"
    """PT2E quantisation, in XNNPACK delegates."""


PORTABLE = (Variant.PORTABLE,)
DELEGATED = (Variant.PORTABLE, Variant.XNNPACK)
IMAGES = (Variant.PORTABLE, Variant.XNNPACK, Variant.XNNPACK_NO_CONCAT, Variant.CHANNELS_LAST)
ALL = tuple(Variant)


@dataclass(frozen=True)
class Entry:
    """One network.

    Attributes
    ----------
    name : str
    source : str
        The package that has it, or ``by hand``.
    make : callable
        Gives the model, with random weights, and example inputs.
    variants : tuple of Variant
    """

    name: str
    source: str
    make: Callable[[], Made]
    variants: tuple[Variant, ...] = PORTABLE


def image(size: int, channels: int = 3) -> torch.Tensor:
    """A random image, square."""
    return torch.randn(1, channels, size, size)
