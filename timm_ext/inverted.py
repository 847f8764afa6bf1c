"""Families of inverted residuals, built by timm: MobileNetV2, MobileNetV3, EfficientNet and MnasNet with random widths,
depths, expansions and kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from timm.layers import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def  # noqa: PLC2701
from timm.models.efficientnet import EfficientNet
from timm.models.mobilenetv3 import MobileNetV3
from torch import nn

from nas_core.latency.by_graph.families.family import Built, Family, Settings, draw, image, resolution, width


class _Stage(NamedTuple):
    """One line of a paper's table of stages."""

    channels: int
    repeats: int
    stride: int
    expansion: int
    kernel: int
    squeeze: float = 0.0
    activation: str = ""


class _Recipe(NamedTuple):
    """A family; sizes are those at width 1."""

    stem: int
    head: int
    stages: tuple[_Stage, ...]
    kernels: tuple[int, ...]
    """Kernels to draw from, in addition to a stage's own."""
    widths: tuple[float, float]
    """Bounds of the width multiplier."""
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


def _sample(recipe: _Recipe, rng: np.random.Generator) -> Settings:
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


def _build(recipe: _Recipe, settings: Settings) -> Built:
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


def _family(name: str, description: str, recipe: _Recipe) -> Family:
    return Family(name, description, partial(_sample, recipe), partial(_build, recipe))


MOBILENETV2 = _family("mobilenetv2", "inverted residuals: widths, depths, expansions, kernels 3 and 5", _V2)
MOBILENETV3 = _family("mobilenetv3", "with squeeze-excitation and hard swish; kernels 3 to 7", _V3)
EFFICIENTNET = _family("efficientnet", "with squeeze-excitation and swish; widths, depths, kernels", _EFFICIENT)
MNASNET = _family("mnasnet", "some stages with squeeze-excitation; widths, depths, kernels", _MNAS)
