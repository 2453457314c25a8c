"""Networks of the package monai: segmentation of medical images, in two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.corpus.entry import DELEGATED, IMAGES, PORTABLE, Entry, Made, Variant

SOURCE = "monai"


def _net(kind: str, size: tuple[int, ...], **settings: Any) -> Callable[[], Made]:
    def make() -> Made:
        from monai.networks import nets

        return getattr(nets, kind)(**settings), (torch.randn(1, 1, *size),)

    return make


def _entry(name: str, make: Callable[[], Made], variants: tuple[Variant, ...] = PORTABLE) -> Entry:
    return Entry(name, SOURCE, make, variants)


FLAT: dict[str, Any] = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
SOLID: dict[str, Any] = FLAT | {"spatial_dims": 3}
STEPS: dict[str, Any] = {"channels": (16, 32, 64, 128, 256), "strides": (2, 2, 2, 2)}

ENTRIES = (
    _entry("basicunet_2d", _net("BasicUNet", (256, 256), **FLAT), IMAGES),
    _entry("basicunet_3d", _net("BasicUNet", (64, 64, 64), **SOLID)),
    _entry("unetplusplus_2d", _net("BasicUNetPlusPlus", (256, 256), **FLAT), DELEGATED),
    _entry("residual_unet_2d", _net("UNet", (256, 256), num_res_units=2, **STEPS, **FLAT)),
    _entry("attention_unet_2d", _net("AttentionUnet", (256, 256), **STEPS, **FLAT)),
    _entry("segresnet_2d", _net("SegResNet", (256, 256), **FLAT)),
    _entry("segresnet_3d", _net("SegResNet", (64, 64, 64), **SOLID)),
    _entry("vnet_3d", _net("VNet", (64, 64, 64), spatial_dims=3, in_channels=1, out_channels=2)),
    _entry("highresnet_3d", _net("HighResNet", (48, 48, 48), spatial_dims=3, in_channels=1, out_channels=2)),
    _entry(
        "unetr_2d",
        _net("UNETR", (96, 96), img_size=(96, 96), feature_size=16, hidden_size=192, mlp_dim=768, num_heads=6, **FLAT),
    ),
    _entry("swin_unetr_2d", _net("SwinUNETR", (96, 96), feature_size=12, **FLAT)),
)
