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
