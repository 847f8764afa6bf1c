"""Networks of NAS-Bench-201: one cell, repeated in three stages."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from nas_core.graph.nasbench201 import CHOICES, STATES, nasbench201_ops, nasbench201_string
from nas_core.latency.by_graph.families.draws import draw, he_weights, resolution, width
from nas_core.latency.by_graph.families.family import Built, Family, Settings, image

_CLASSES = 10


class _Cell(nn.Module):
    """Four states; each sums what its edges make of the earlier ones. ``none`` is not computed, unless a state has no
    other edge."""

    def __init__(self, channels: int, ops: tuple[int, ...]) -> None:
        super().__init__()
        self.edges = [(begin, end, CHOICES[op]) for (begin, end), op in zip(STATES, ops, strict=True)]
        self.operations = nn.ModuleList(_operation(name, channels) for _, _, name in self.edges)

    def forward(self, x: Tensor) -> Tensor:
        states = [x]
        for state in range(1, 4):
            made = [
                operation(states[begin])
                for (begin, end, name), operation in zip(self.edges, self.operations, strict=True)
                if end == state and name != "none"
            ]
            total = made[0] if made else x * 0.0
            for other in made[1:]:
                total = total + other
            states.append(total)
        return states[-1]


class _Reduction(nn.Module):
    """A residual block that halves the resolution."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_relu_conv(channels, wide, 3, 2), _relu_conv(wide, wide, 3))
        self.short = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(channels, wide, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.short(x) + self.body(x)
        return total


def _relu_conv(channels: int, wide: int, kernel: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels, wide, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(wide))


def _operation(name: str, channels: int) -> nn.Module:
    if name.startswith("nor_conv"):
        return _relu_conv(channels, channels, int(name[-1]))
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return nn.Identity()


def _sample(rng: np.random.Generator) -> Settings:
    """Cells of which nothing reaches the output are drawn again, at most 50 times: one in 40 is."""
    for _ in range(50):
        ops = [int(op) for op in rng.integers(len(CHOICES), size=len(STATES))]
        if _reaches(ops):
            break
    return {
        "resolution": resolution(rng, 32, 64, 8),
        "cell": nasbench201_string(ops),
        "cells": 5,
        "widths": [width(rng, base * draw(rng, (1.0, 1.5, 2.0, 3.0)), 0.2) for base in (16, 32, 64)],
    }


def _reaches(ops: list[int]) -> bool:
    reached = {0}
    for (begin, end), op in zip(STATES, ops, strict=True):
        if begin in reached and CHOICES[op] != "none":
            reached.add(end)
    return 3 in reached


def _build(settings: Settings) -> Built:
    ops = nasbench201_ops(settings["cell"])
    channels = settings["widths"][0]
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
    for stage, wide in enumerate(settings["widths"]):
        if stage:
            layers.append(_Reduction(channels, wide))
        layers += [_Cell(wide, ops) for _ in range(settings["cells"])]
        channels = wide
    layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    layers.append(nn.Linear(channels, _CLASSES))
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


NASBENCH201 = Family(
    "nasbench201", "NAS-Bench-201: any cell, five times in each of three stages; widths", _sample, _build
)
