"""Small modules for the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Accumulator(nn.Module):
    """Two buffers that are written in every run; their new values are parts of concats."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("mixed", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        self.mixed.copy_(torch.cat([self.total[:2], x[:2]]))
        return torch.cat([self.total, self.mixed, x.sin()]).exp()


class TwoConvolutions(nn.Module):
    """A concat of convolutions along the channels; for delegates."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 5, 3)
        self.b = nn.Conv2d(3, 7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.a(x).relu(), self.b(x).relu()], 1).sin()


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> nn.Module:
    """Convolution and SiLU."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.SiLU())


class SplitAndJoin(nn.Module):
    """As in current detectors: split the channels, carry one half through bottlenecks, join all that came by."""

    def __init__(self, channels: int, blocks: int = 2) -> None:
        super().__init__()
        half = channels // 2
        self.first = convolution(channels, channels)
        self.blocks = nn.ModuleList(
            nn.Sequential(convolution(half, half, 3), convolution(half, half, 3)) for _ in range(blocks)
        )
        self.last = convolution(channels + blocks * half, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A small detector: a backbone of three scales, pooled pyramid, and a neck that joins them again."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = convolution(3, width, 3, 2)
        self.stage1 = nn.Sequential(convolution(width, 2 * width, 3, 2), SplitAndJoin(2 * width))
        self.stage2 = nn.Sequential(convolution(2 * width, 4 * width, 3, 2), SplitAndJoin(4 * width))
        self.reduce = convolution(4 * width, 2 * width)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.expand = convolution(8 * width, 4 * width)
        self.neck = nn.Sequential(convolution(6 * width, 2 * width), SplitAndJoin(2 * width))
        self.heads = nn.ModuleList([nn.Conv2d(2 * width, 8, 1), nn.Conv2d(4 * width, 8, 1)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fine = self.stage1(self.stem(x))
        pyramid = [self.reduce(self.stage2(fine))]
        for _ in range(3):
            pyramid.append(self.pool(pyramid[-1]))
        coarse = self.expand(torch.cat(pyramid, 1))
        up = nn.functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return self.heads[0](self.neck(torch.cat([up, fine], 1))), self.heads[1](coarse)


class Layers(nn.Module):
    """Each layer sees the first halves of the last two results: the second halves die, and are written over."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = [x]
        for layer in self.layers:
            made.append(layer(torch.cat(made[-2:])).relu()[: x.shape[0]])
        return torch.cat(made)
