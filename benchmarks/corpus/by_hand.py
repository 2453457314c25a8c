"""Networks written here, as no package that installs beside this torch has them."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.corpus.entry import ALL, PORTABLE, Entry, Made, image

SOURCE = "by hand"


class Recurrent(nn.Module):
    """A recurrent layer over a sequence; torch's exporter unrolls it, step by step."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def _bigru() -> Made:
    return Recurrent(nn.GRU(40, 64, 2, bidirectional=True)), (torch.randn(50, 1, 40),)


def _bilstm() -> Made:
    return Recurrent(nn.LSTM(40, 64, 1, bidirectional=True)), (torch.randn(40, 1, 40),)


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> nn.Module:
    """Convolution, batch norm, SiLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU()
    )


class Split(nn.Module):
    """A detector's stage: split the channels, carry one half through bottlenecks, join all that came by."""

    def __init__(self, inputs: int, outputs: int, blocks: int, residual: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.residual = residual
        self.first = convolution(inputs, outputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(convolution(half, half, 3), convolution(half, half, 3)) for _ in range(blocks)
        )
        self.last = convolution((2 + blocks) * half, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            new = block(parts[-1])
            parts.append(parts[-1] + new if self.residual else new)
        return self.last(torch.cat(parts, 1))


class Pool(nn.Module):
    """Three max-pools one after the other, all joined."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels // 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.last = convolution(2 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """An anchor-free detector of three scales in the manner of YOLOv8n: backbone, two-way neck, heads, one concat."""

    def __init__(self, width: int = 16, classes: int = 80) -> None:
        super().__init__()
        w = width
        self.stem = nn.Sequential(convolution(3, w, 3, 2), convolution(w, 2 * w, 3, 2), Split(2 * w, 2 * w, 1, True))
        self.stage3 = nn.Sequential(convolution(2 * w, 4 * w, 3, 2), Split(4 * w, 4 * w, 2, True))
        self.stage4 = nn.Sequential(convolution(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 2, True))
        self.stage5 = nn.Sequential(convolution(8 * w, 16 * w, 3, 2), Split(16 * w, 16 * w, 1, True), Pool(16 * w))
        self.up = nn.Upsample(scale_factor=2)
        self.down4 = Split(24 * w, 8 * w, 1, False)
        self.down3 = Split(12 * w, 4 * w, 1, False)
        self.stride3, self.up4 = convolution(4 * w, 4 * w, 3, 2), Split(12 * w, 8 * w, 1, False)
        self.stride4, self.up5 = convolution(8 * w, 8 * w, 3, 2), Split(24 * w, 16 * w, 1, False)
        self.heads = nn.ModuleList(nn.ModuleList(_head(c * w, n) for n in (64, classes)) for c in (4, 8, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        three = self.stage3(self.stem(x))
        four = self.stage4(three)
        five = self.stage5(four)
        middle = self.down4(torch.cat([self.up(five), four], 1))
        low = self.down3(torch.cat([self.up(middle), three], 1))
        middle = self.up4(torch.cat([self.stride3(low), middle], 1))
        high = self.up5(torch.cat([self.stride4(middle), five], 1))
        scales = zip(self.heads, (low, middle, high), strict=True)
        made = [torch.cat([box(x), score(x)], 1).flatten(2) for (box, score), x in scales]
        boxes, scores = torch.cat(made, 2).split((64, made[0].shape[1] - 64), 1)
        return torch.cat([boxes, scores.sigmoid()], 1)


def _head(channels: int, outputs: int) -> nn.Module:
    return nn.Sequential(convolution(channels, 64, 3), convolution(64, 64, 3), nn.Conv2d(64, outputs, 1))


class Stages(nn.Module):
    """Eight stages that compute two halves of 4 MB, concatenate them and split the result: nothing but copies."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            a, b = torch.cat([a.neg(), b.abs()]).split(a.shape[0])
        return a + b


def _stages() -> Made:
    rows = 8  # the exporter walks the rows of a tensor one by one
    return Stages(), tuple(torch.randn(rows, (1 << 20) // rows) for _ in range(2))


class HandWritten(nn.Module):
    """Digits by one hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


ENTRIES = (
    Entry("yolov8n_like", SOURCE, lambda: (Detector(), (image(320),)), ALL),
    Entry("bigru", SOURCE, _bigru, PORTABLE),
    Entry("bilstm", SOURCE, _bilstm, PORTABLE),
    Entry("digits_mlp", SOURCE, lambda: (HandWritten(), (torch.randn(1, 784),)), PORTABLE),
)

TOYS = (Entry("concat_split_stages", SOURCE, _stages, PORTABLE),)
"""Programs that are no networks: to be run, but not counted."""
