"""Networks of the package pytorchcv: classifiers, segmenters, detectors, pose."""

from __future__ import annotations

import functools

from benchmarks.corpus.entry import ALL, DELEGATED, IMAGES, PORTABLE, Entry, Made, Variant, image

SOURCE = "pytorchcv"


def _vision(name: str, size: int) -> Made:
    from pytorchcv.model_provider import get_model

    sized = {"in_size": (size, size)} if "_" in name and name.rsplit("_", 1)[1] in _SIZED else {}
    return get_model(name, pretrained=False, **sized), (image(size),)


_SIZED = frozenset({"cityscapes", "coco", "voc", "celebamaskhq"})
"""Data sets whose networks are told the size of the image."""


def _entry(name: str, variants: tuple[Variant, ...] = PORTABLE, size: int = 224) -> Entry:
    short = name.removesuffix("_cityscapes").removesuffix("_coco").removesuffix("_celebamaskhq")
    return Entry(short, SOURCE, functools.partial(_vision, name, size), variants)


ENTRIES = (
    # one path
    _entry("alexnet"),
    _entry("mobilenet_w1", DELEGATED),
    _entry("mobilenetv2_w1", ALL),
    _entry("darknet53"),
    # residual
    _entry("resnet18", ALL),
    _entry("resnet50", DELEGATED),
    _entry("preresnet18"),
    _entry("seresnet50"),
    _entry("resnext50_32x4d"),
    _entry("mnasnet_b1"),
    _entry("mobilenetv3_large_w1", DELEGATED),
    _entry("efficientnet_b0", DELEGATED),
    _entry("proxylessnas_mobile"),
    _entry("fbnet_cb"),
    _entry("xception", size=299),
    _entry("igcv3_w1"),
    # concats
    _entry("squeezenet_v1_1", ALL),
    _entry("bninception"),
    _entry("inceptionv3", DELEGATED, 299),
    _entry("inceptionv4", size=299),
    _entry("inceptionresnetv1", size=299),
    _entry("densenet121", (*IMAGES, Variant.INT8)),
    _entry("xdensenet121_2"),
    _entry("sparsenet121"),
    _entry("condensenet74_c4_g4"),
    _entry("peleenet", DELEGATED),
    _entry("hardnet39ds"),
    _entry("hardnet68"),
    _entry("vovnet39", IMAGES),
    _entry("dla34"),
    _entry("fishnet99"),
    _entry("shufflenet_g1_w1"),
    _entry("shufflenetv2_w1", ALL),
    _entry("menet108_8x1_g3"),
    _entry("ghostnet", DELEGATED),
    _entry("mixnet_s"),
    _entry("nasnet_4a1056"),
    _entry("hrnet_w18_small_v1", IMAGES),
    # segmentation
    _entry("unet_cityscapes", IMAGES),
    _entry("bisenet_resnet18_celebamaskhq"),
    _entry("cgnet_cityscapes"),
    _entry("dabnet_cityscapes"),
    _entry("edanet_cityscapes"),
    _entry("enet_cityscapes"),
    _entry("erfnet_cityscapes"),
    _entry("fastscnn_cityscapes"),
    _entry("icnet_resnetd50b_cityscapes", size=480),
    _entry("lednet_cityscapes", size=256),
    _entry("pspnet_resnetd50b_cityscapes", size=240),
    _entry("sinet_cityscapes", size=256),
    # detection and pose
    _entry("centernet_resnet18_coco", size=256),
    _entry("lwopenpose2d_mobilenet_cmupan_coco", IMAGES, 256),
)
