"""Families of random image networks, for latency data sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from timm.layers import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def  # noqa: PLC2701
from timm.models.efficientnet import EfficientNet
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.resnet import BasicBlock, Bottleneck, ResNet
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from nas_core.latency.by_graph.families.family import Built, Family, Settings, draw, image, resolution, width
from nas_core.space import Architecture
from nas_core.space.image import image_space, static_image_space
from timm_ext.model import VisionModel


def _sample_resnet(rng: np.random.Generator) -> Settings:
    bottleneck = bool(rng.integers(4) == 0)
    multiplier = rng.uniform(0.3, 0.6) if bottleneck else rng.uniform(0.5, 1.2)
    return {
        "resolution": resolution(rng, 64, 160),
        "bottleneck": bottleneck,
        "stem": width(rng, 64 * multiplier),
        "channels": [width(rng, base * multiplier) for base in (64, 128, 256, 512)],
        "depths": [int(rng.integers(1, max_depth + 1)) for max_depth in (3, 3, 4, 3)],
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


class _Stage(NamedTuple):
    """Stage of inverted residual blocks, as in the tables of the papers."""

    channels: int
    repeats: int
    stride: int
    expansion: int
    kernel: int
    squeeze: float = 0.0
    activation: str = ""


class _Recipe(NamedTuple):
    """Sizes of a family of networks of inverted residuals, at width multiplier 1."""

    stem: int
    head: int
    stages: tuple[_Stage, ...]
    kernels: tuple[int, ...]
    """Kernel sizes to sample, in addition to that of the stage."""
    widths: tuple[float, float]
    """Smallest and largest width multiplier."""
    resolutions: tuple[int, int]
    network: Callable[..., nn.Module]


_V2 = _Recipe(
    32,
    1280,
    (
        _Stage(24, 2, 2, 6, 3), _Stage(32, 3, 2, 6, 3), _Stage(64, 4, 2, 6, 3), _Stage(96, 3, 1, 6, 3),
        _Stage(160, 3, 2, 6, 3), _Stage(320, 1, 1, 6, 3),
    ),
    (3, 5),
    (0.7, 1.9),
    (128, 224),
    partial(EfficientNet, act_layer=nn.ReLU6),
)  # fmt: skip
_V3 = _Recipe(
    16,
    1280,
    (
        _Stage(24, 2, 2, 4, 3, 0, "re"), _Stage(40, 3, 2, 3, 5, 0.25, "re"), _Stage(80, 4, 2, 3, 3, 0, "hs"),
        _Stage(112, 2, 1, 6, 3, 0.25, "hs"), _Stage(160, 3, 2, 6, 5, 0.25, "hs"),
    ),
    (3, 5, 7),
    (0.7, 1.9),
    (112, 224),
    partial(MobileNetV3, act_layer=nn.Hardswish, se_layer=partial(SqueezeExcite, gate_layer="hard_sigmoid")),
)  # fmt: skip
_EFFICIENT = _Recipe(
    32,
    1280,
    (
        _Stage(24, 2, 2, 6, 3, 0.25), _Stage(40, 2, 2, 6, 5, 0.25), _Stage(80, 3, 2, 6, 3, 0.25),
        _Stage(112, 3, 1, 6, 5, 0.25), _Stage(192, 4, 2, 6, 5, 0.25), _Stage(320, 1, 1, 6, 3, 0.25),
    ),
    (3, 5),
    (0.6, 1.4),
    (112, 224),
    partial(EfficientNet, act_layer=nn.SiLU),
)  # fmt: skip
_MNAS = _Recipe(
    32,
    1280,
    (
        _Stage(24, 3, 2, 3, 3), _Stage(40, 3, 2, 3, 5, 0.25), _Stage(80, 3, 2, 6, 5), _Stage(96, 2, 1, 6, 3, 0.25),
        _Stage(192, 4, 2, 6, 5, 0.25), _Stage(320, 1, 1, 6, 3),
    ),
    (3, 5),
    (0.7, 1.8),
    (128, 224),
    partial(EfficientNet, act_layer=nn.ReLU),
)  # fmt: skip


def _sample_inverted(recipe: _Recipe, rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(*recipe.widths)
    stages: list[dict[str, Any]] = []
    for stage in recipe.stages:
        stages.append(
            {
                "channels": width(rng, stage.channels * multiplier, 0.2),
                "repeats": max(1, stage.repeats + int(rng.integers(-1, 2))),
                "stride": stage.stride,
                "expansion": max(2, stage.expansion + int(rng.integers(-2, 1))),
                "kernel": draw(rng, (stage.kernel, *recipe.kernels)),
                "squeeze": stage.squeeze,
                "activation": stage.activation,
            }
        )
    return {
        "resolution": resolution(rng, *recipe.resolutions),
        "stem": width(rng, recipe.stem * multiplier, 0.2),
        "first": width(rng, recipe.stem / 2 * multiplier, 0.2),
        "stages": stages,
        "head": width(rng, recipe.head * min(multiplier, 1.0), 0.2),
    }


def _build_inverted(recipe: _Recipe, settings: Settings) -> Built:
    rows = [[f"ds_r1_k3_s1_e1_c{settings['first']}"]]
    for stage in settings["stages"]:
        row = "ir_r{repeats}_k{kernel}_s{stride}_e{expansion}_c{channels}".format(**stage)
        row += f"_se{stage['squeeze']}" if stage["squeeze"] else ""
        row += f"_n{stage['activation']}" if stage["activation"] else ""
        rows.append([row])
    if recipe is _V3:
        rows.append([f"cn_r1_k1_s1_c{settings['stages'][-1]['channels'] * 6}"])
    network = recipe.network(
        block_args=decode_arch_def(rows),
        num_features=settings["head"],
        stem_size=settings["stem"],
        fix_stem=True,
        round_chs_fn=round,
    )
    return network, image(settings["resolution"])


def _inverted(name: str, description: str, recipe: _Recipe) -> Family:
    return Family(name, description, partial(_sample_inverted, recipe), partial(_build_inverted, recipe))


FAMILIES = (
    Family("resnet", "basic and bottleneck blocks: widths, depths", _sample_resnet, _build_resnet),
    Family("vit", "vision transformers: patches, width, depth, heads", _sample_vit, _build_vit),
    Family("mformer", "softmax and linear attention mixed, layer by layer", _sample_mformer, _build_mformer),
    _inverted("mobilenetv2", "inverted residuals: widths, depths, expansions, kernels 3 and 5", _V2),
    _inverted("mobilenetv3", "with squeeze-excitation and hard swish; kernels 3 to 7", _V3),
    _inverted("efficientnet", "with squeeze-excitation and swish; widths, depths, kernels", _EFFICIENT),
    _inverted("mnasnet", "some stages with squeeze-excitation; widths, depths, kernels", _MNAS),
)
