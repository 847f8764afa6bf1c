"""RegNet- and ResNeXt-like networks: bottlenecks whose middle convolution has groups."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.latency.by_graph.families.draws import draw, he_weights, resolution
from nas_core.latency.by_graph.families.family import Built, Family, Settings, image

_CLASSES = 1000
_SHRINK = 4
"""Times that the squeezed vector of a block is narrower than its input."""


class _Bottleneck(nn.Module):
    """1 x 1, grouped 3 x 3, perhaps weights for its channels, 1 x 1; added to the input or a projection of it (RegNet's
    X and Y blocks, Radosavovic et al., "Designing Network Design Spaces", CVPR 2020)."""

    def __init__(self, channels: int, wide: int, inner: int, groups: int, stride: int, squeeze: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _conv(channels, inner, 1),
            nn.ReLU(),
            _conv(inner, inner, 3, stride, groups),
            nn.ReLU(),
            *([_Squeeze(inner, max(8, channels // _SHRINK))] if squeeze else []),
            _conv(inner, wide, 1),
        )
        same = channels == wide and stride == 1
        self.shortcut = nn.Identity() if same else _conv(channels, wide, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.shortcut(x) + self.body(x))


class _Squeeze(nn.Module):
    """Weights of channels that follow from their means (Hu et al., "Squeeze-and-Excitation Networks", CVPR 2018)."""

    def __init__(self, channels: int, narrow: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, narrow, 1),
            nn.ReLU(),
            nn.Conv2d(narrow, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        weighted: Tensor = x * self.weights(x)
        return weighted


def _conv(channels: int, wide: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels, wide, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(wide))


def _sample(rng: np.random.Generator) -> Settings:
    per_group = draw(rng, (4, 8, 8, 16, 24, 32, 64))
    factor = draw(rng, (1.0, 1.0, 0.5))
    first, growth = rng.uniform(24, 72), rng.uniform(1.6, 2.4)
    stages = []
    for stage, most in enumerate((2, 4, 7, 3)):
        groups = max(1, round(first * growth**stage * factor / per_group))
        inner = groups * per_group
        stages.append(
            {"depth": int(rng.integers(1, most + 1)), "width": round(inner / factor), "inner": inner, "groups": groups}
        )
    return {
        "resolution": resolution(rng, 96, 256, 32),
        "stem": draw(rng, (16, 24, 32, 64)),
        "squeeze": bool(rng.integers(2)),
        "stages": stages,
    }


def _build(settings: Settings) -> Built:
    channels = settings["stem"]
    layers: list[nn.Module] = [_conv(3, channels, 3, 2), nn.ReLU()]
    for stage in settings["stages"]:
        for block in range(stage["depth"]):
            stride = 1 if block else 2
            layers.append(
                _Bottleneck(channels, stage["width"], stage["inner"], stage["groups"], stride, settings["squeeze"])
            )
            channels = stage["width"]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, _CLASSES)]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


REGNET = Family(
    "regnet", "RegNet- and ResNeXt-like bottlenecks: widths, depths, groups, squeeze-and-excitation", _sample, _build
)
