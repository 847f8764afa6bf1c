"""Families of image networks, of timm and this project, for sets of measured latencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from timm.models.resnet import BasicBlock, Bottleneck, ResNet
from timm.models.vision_transformer import VisionTransformer

from nas_core.latency.by_graph.families.family import Built, Family, Settings, draw, image, resolution, width
from nas_core.space import Architecture
from nas_core.space.image import image_space, static_image_space
from timm_ext.inverted import EFFICIENTNET, MNASNET, MOBILENETV2, MOBILENETV3
from timm_ext.model import VisionModel


def _sample_resnet(rng: np.random.Generator) -> Settings:
    bottleneck = bool(rng.integers(4) == 0)
    multiplier = rng.uniform(0.3, 0.6) if bottleneck else rng.uniform(0.5, 1.2)
    return {
        "resolution": resolution(rng, 64, 160),
        "bottleneck": bottleneck,
        "stem": width(rng, 64 * multiplier),
        "channels": [width(rng, base * multiplier) for base in (64, 128, 256, 512)],
        "depths": [int(rng.integers(1, most + 1)) for most in (3, 3, 4, 3)],
        "down_kernel": draw(rng, (1, 3)),
    }


def _build_resnet(settings: Settings) -> Built:
    network = ResNet(
        Bottleneck if settings["bottleneck"] else BasicBlock,
        tuple(settings["depths"]),
        stem_width=settings["stem"],
        channels=tuple(settings["channels"]),
        down_kernel_size=settings["down_kernel"],
        zero_init_last=False,
    )
    return network, image(settings["resolution"])


def _sample_vit(rng: np.random.Generator) -> Settings:
    patch, heads, head_dim = draw(rng, (8, 12, 16)), draw(rng, (3, 4, 6)), draw(rng, (32, 48, 64))
    return {
        "resolution": patch * int(rng.integers(5, 13)),
        "patch": patch,
        "embed_dim": heads * head_dim,
        "heads": heads,
        "depth": int(rng.integers(4, 13)),
        "mlp_ratio": draw(rng, (2.0, 2.5, 3.0, 3.5, 4.0)),
    }


def _build_vit(settings: Settings) -> Built:
    network = VisionTransformer(
        img_size=settings["resolution"],
        patch_size=settings["patch"],
        embed_dim=settings["embed_dim"],
        depth=settings["depth"],
        num_heads=settings["heads"],
        mlp_ratio=settings["mlp_ratio"],
    )
    return network, image(settings["resolution"])


def _sample_mformer(rng: np.random.Generator) -> Settings:
    patch, side = draw(rng, (8, 12, 16)), int(rng.integers(5, 13))
    space = image_space(
        "mformer_family",
        layers=tuple(range(3, 11)),
        embed_dims=(128, 192, 256, 320, 384),
        ffn_dims=(256, 384, 512, 768, 1024),
        heads=(2, 3, 4, 5, 6),
        head_dim=draw(rng, (32, 48, 64)),
        image_size=patch * side,
        patch_size=patch,
        attention=("softmax", "linear"),
        relative_clip=draw(rng, (0, 7, 14)),
    )
    return {"architecture": space.sample(rng).to_dict()}


def _build_mformer(settings: Settings) -> Built:
    architecture = Architecture(settings["architecture"])
    return VisionModel(static_image_space(architecture)), image(architecture.number("image_size"))


_OWN: tuple[tuple[str, str, Any, Any], ...] = (
    ("resnet", "basic and bottleneck blocks: widths, depths", _sample_resnet, _build_resnet),
    ("vit", "vision transformers: patches, width, depth, heads", _sample_vit, _build_vit),
    ("mformer", "softmax and linear attention mixed, layer by layer", _sample_mformer, _build_mformer),
)

FAMILIES = (*(Family(*row) for row in _OWN), MOBILENETV2, MOBILENETV3, EFFICIENTNET, MNASNET)
