"""The networks of `arena demo`, written out so that the demo needs nothing but torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SinCosCat(nn.Module):
    """The graph of pytorch/executorch issue 3210."""

    def forward(self, x: Tensor) -> Tensor:
        """64 floats in, 128 out."""
        sin, cos = torch.sin(x), torch.cos(x)
        return torch.sigmoid(torch.cat([cos, sin]))


class UNet(nn.Module):
    """U-Net with skip connections along the channels (Ronneberger, Fischer and Brox, MICCAI 2015), four levels.

    Parameters
    ----------
    channels : int
        Of the top level; each level below has twice as many.
    """

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        widths = [channels << level for level in range(4)]
        self.down = nn.ModuleList(_double_conv(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(_double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(channels, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """An image whose sides are multiples of 8."""
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else self.pool(x))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips[:-1]), strict=True):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def _double_conv(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels_out, channels_out, 3, padding=1),
        nn.ReLU(),
    )
