"""SqueezeNet- and GoogLeNet-like networks: modules whose branches are concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.latency.by_graph.families.draws import draw, he_weights, resolution, width
from nas_core.latency.by_graph.families.family import Built, Family, Settings, image

_CLASSES = 1000


class _Branches(nn.Module):
    """What each branch makes of the input, concatenated along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def _conv(channels: int, wide: int, kernel: int, stride: int = 1, normed: bool = False) -> nn.Sequential:
    convolution = nn.Conv2d(channels, wide, kernel, stride, kernel // 2, bias=not normed)
    return nn.Sequential(convolution, *([nn.BatchNorm2d(wide)] if normed else []), nn.ReLU())


def _sample_squeezenet(rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(0.6, 1.8)
    fires: list[dict[str, Any]] = []
    for stage, base in enumerate((64, 128, 192, 256)):
        for index in range(int(rng.integers(1, 4))):
            fires.append(
                {
                    "pool": stage in (1, 2) and index == 0,
                    "squeeze": width(rng, base / 4 * multiplier),
                    "one": width(rng, base * multiplier),
                    "three": width(rng, base * multiplier),
                    "kernel": draw(rng, (3, 3, 3, 5)),
                }
            )
    return {
        "resolution": resolution(rng, 96, 224),
        "stem": width(rng, 64 * multiplier),
        "stem_kernel": draw(rng, (3, 5, 7)),
        "fires": fires,
    }


def _build_squeezenet(settings: Settings) -> Built:
    channels = settings["stem"]
    layers: list[nn.Module] = [_conv(3, channels, settings["stem_kernel"], 2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    for fire in settings["fires"]:
        if fire["pool"]:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        squeezed = fire["squeeze"]
        layers += [
            _conv(channels, squeezed, 1),
            _Branches(_conv(squeezed, fire["one"], 1), _conv(squeezed, fire["three"], fire["kernel"])),
        ]
        channels = fire["one"] + fire["three"]
    layers += [_conv(channels, _CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


_INCEPTIONS = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Channels at width 1, by stage: the 1x1 branch, the 3x3 branch's reduction and output, those of the 5x5 branch, and
the pooled branch (Szegedy et al., "Going Deeper with Convolutions", CVPR 2015)."""


def _sample_googlenet(rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(0.5, 1.3)
    stages = []
    for modules in _INCEPTIONS:
        kept = modules[: int(rng.integers(1, len(modules) + 1))]
        stages.append([[width(rng, base * multiplier) for base in module] for module in kept])
    return {
        "resolution": resolution(rng, 112, 224),
        "stem": [width(rng, base * multiplier) for base in (64, 64, 192)],
        "large_kernel": draw(rng, (3, 5, 5)),
        "stages": stages,
    }


def _inception(channels: int, widths: Sequence[int], large: int) -> _Branches:
    one, reduce3, three, reduce5, five, pooled = widths
    return _Branches(
        _conv(channels, one, 1, normed=True),
        nn.Sequential(_conv(channels, reduce3, 1, normed=True), _conv(reduce3, three, 3, normed=True)),
        nn.Sequential(_conv(channels, reduce5, 1, normed=True), _conv(reduce5, five, large, normed=True)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), _conv(channels, pooled, 1, normed=True)),
    )


def _build_googlenet(settings: Settings) -> Built:
    first, second, channels = settings["stem"]
    layers: list[nn.Module] = [
        _conv(3, first, 7, 2, True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        _conv(first, second, 1, normed=True),
        _conv(second, channels, 3, normed=True),
    ]
    for modules in settings["stages"]:
        layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for widths in modules:
            layers.append(_inception(channels, widths, settings["large_kernel"]))
            channels = widths[0] + widths[2] + widths[4] + widths[5]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


SQUEEZENET = Family(
    "squeezenet", "fire modules: number, widths, kernels 3 and 5", _sample_squeezenet, _build_squeezenet
)
GOOGLENET = Family("googlenet", "inception modules: number, width of every branch", _sample_googlenet, _build_googlenet)
