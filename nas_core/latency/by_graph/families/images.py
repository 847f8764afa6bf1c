"""Families of image networks: AlexNet, VGG, SqueezeNet, GoogLeNet and NAS-Bench-201, with random sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.graph.nasbench201 import CHOICES, STATES, nasbench201_ops, nasbench201_string
from nas_core.latency.by_graph.families.family import (
    Built,
    Family,
    Settings,
    draw,
    he_weights,
    image,
    resolution,
    width,
)

_CLASSES = 1000


def _sample_alexnet(rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(0.5, 1.5)
    return {
        "resolution": resolution(rng, 96, 224),
        "widths": [width(rng, base * multiplier) for base in (64, 192, 384, 256, 256)],
        "kernels": [draw(rng, (7, 9, 11)), draw(rng, (3, 5, 7)), *(draw(rng, (3, 3, 5)) for _ in range(3))],
        "hidden": [width(rng, 768, 0.7, 64) for _ in range(2)],
    }


def _build_alexnet(settings: Settings) -> Built:
    layers: list[nn.Module] = []
    channels = 3
    for index, (out_channels, kernel) in enumerate(zip(settings["widths"], settings["kernels"], strict=True)):
        layers += [nn.Conv2d(channels, out_channels, kernel, 1 if index else 4, kernel // 2), nn.ReLU()]
        if index in (0, 1, 4):
            layers.append(nn.MaxPool2d(3, 2))
        channels = out_channels
    side = settings["resolution"] // 4
    for _ in range(3):
        side = (side - 1) // 2
    layers += [nn.Flatten(), *_classifier(channels * side**2, settings["hidden"])]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


def _sample_vgg(rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(0.2, 0.6)
    stages: list[dict[str, Any]] = []
    for base in (64, 128, 256, 512, 512):
        repeats = int(rng.integers(1, 3 if base < 256 else 4))
        stages.append(
            {"width": width(rng, base * multiplier), "kernels": [draw(rng, (3, 3, 3, 5)) for _ in range(repeats)]}
        )
    return {
        "resolution": resolution(rng, 64, 128, 32),
        "stages": stages,
        "batch_norm": bool(rng.integers(2)),
        "hidden": [width(rng, 512, 0.7, 64) for _ in range(2)],
    }


def _build_vgg(settings: Settings) -> Built:
    layers: list[nn.Module] = []
    channels = 3
    for stage in settings["stages"]:
        for kernel in stage["kernels"]:
            layers.append(nn.Conv2d(channels, stage["width"], kernel, padding=kernel // 2))
            if settings["batch_norm"]:
                layers.append(nn.BatchNorm2d(stage["width"]))
            layers.append(nn.ReLU())
            channels = stage["width"]
        layers.append(nn.MaxPool2d(2, 2))
    side = settings["resolution"] // 2 ** len(settings["stages"])
    layers += [nn.Flatten(), *_classifier(channels * side**2, settings["hidden"])]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


def _classifier(features: int, hidden: list[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for out_features in hidden:
        layers += [nn.Linear(features, out_features), nn.ReLU()]
        features = out_features
    return [*layers, nn.Linear(features, _CLASSES)]


ALEXNET = Family(
    "alexnet", "five convolutions: widths, kernels 3 to 11, hidden layers", _sample_alexnet, _build_alexnet
)
VGG = Family("vgg", "five stages: widths, depths, kernels 3 and 5, batch norm or none", _sample_vgg, _build_vgg)


class _Branches(nn.Module):
    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def _conv_relu(channels: int, out_channels: int, kernel: int, stride: int = 1, normed: bool = False) -> nn.Sequential:
    convolution = nn.Conv2d(channels, out_channels, kernel, stride, kernel // 2, bias=not normed)
    return nn.Sequential(convolution, *([nn.BatchNorm2d(out_channels)] if normed else []), nn.ReLU())


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
    layers: list[nn.Module] = [_conv_relu(3, channels, settings["stem_kernel"], 2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    for fire in settings["fires"]:
        if fire["pool"]:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        squeezed = fire["squeeze"]
        layers += [
            _conv_relu(channels, squeezed, 1),
            _Branches(_conv_relu(squeezed, fire["one"], 1), _conv_relu(squeezed, fire["three"], fire["kernel"])),
        ]
        channels = fire["one"] + fire["three"]
    layers += [_conv_relu(channels, _CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


# channels of each inception module by stage (Szegedy et al., CVPR 2015): 1x1 branch, reduction and output of the 3x3
# branch, the same of the 5x5 branch, pooling branch
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


def _sample_googlenet(rng: np.random.Generator) -> Settings:
    multiplier = rng.uniform(0.5, 1.3)
    stages = []
    for modules in _INCEPTIONS:
        stage_modules = modules[: int(rng.integers(1, len(modules) + 1))]
        stages.append([[width(rng, base * multiplier) for base in module] for module in stage_modules])
    return {
        "resolution": resolution(rng, 112, 224),
        "stem": [width(rng, base * multiplier) for base in (64, 64, 192)],
        "large_kernel": draw(rng, (3, 5, 5)),
        "stages": stages,
    }


def _inception(channels: int, widths: Sequence[int], large: int) -> _Branches:
    width1, reduce3, width3, reduce5, width5, pooled = widths
    return _Branches(
        _conv_relu(channels, width1, 1, normed=True),
        nn.Sequential(_conv_relu(channels, reduce3, 1, normed=True), _conv_relu(reduce3, width3, 3, normed=True)),
        nn.Sequential(_conv_relu(channels, reduce5, 1, normed=True), _conv_relu(reduce5, width5, large, normed=True)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), _conv_relu(channels, pooled, 1, normed=True)),
    )


def _build_googlenet(settings: Settings) -> Built:
    first, second, channels = settings["stem"]
    layers: list[nn.Module] = [
        _conv_relu(3, first, 7, 2, True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        _conv_relu(first, second, 1, normed=True),
        _conv_relu(second, channels, 3, normed=True),
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


class _Cell(nn.Module):
    def __init__(self, channels: int, ops: tuple[int, ...]) -> None:
        super().__init__()
        self.edges = [(source, target, CHOICES[op]) for (source, target), op in zip(STATES, ops, strict=True)]
        self.operations = nn.ModuleList(_operation(name, channels) for _, _, name in self.edges)

    def forward(self, x: Tensor) -> Tensor:
        states = [x]
        for state in range(1, 4):
            terms = [
                operation(states[source])
                for (source, target, name), operation in zip(self.edges, self.operations, strict=True)
                if target == state and name != "none"
            ]
            total = terms[0] if terms else x * 0.0
            for term in terms[1:]:
                total = total + term
            states.append(total)
        return states[-1]


class _Reduction(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _relu_conv(in_channels, out_channels, 3, 2), _relu_conv(out_channels, out_channels, 3)
        )
        self.short = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(in_channels, out_channels, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return torch.add(self.short(x), self.body(x))


def _relu_conv(channels: int, out_channels: int, kernel: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels, out_channels, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(out_channels))


def _operation(name: str, channels: int) -> nn.Module:
    if name.startswith("nor_conv"):
        return _relu_conv(channels, channels, int(name[-1]))
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return nn.Identity()


def _sample_nasbench201(rng: np.random.Generator) -> Settings:
    # in one of 40 cells the output does not depend on the input
    for _ in range(50):
        ops = [int(op) for op in rng.integers(len(CHOICES), size=len(STATES))]
        if _reaches_output(ops):
            break
    return {
        "resolution": resolution(rng, 32, 64, 8),
        "cell": nasbench201_string(ops),
        "cells": 5,
        "widths": [width(rng, base * draw(rng, (1.0, 1.5, 2.0, 3.0)), 0.2) for base in (16, 32, 64)],
    }


def _reaches_output(ops: list[int]) -> bool:
    reached = {0}
    for (source, target), op in zip(STATES, ops, strict=True):
        if source in reached and CHOICES[op] != "none":
            reached.add(target)
    return 3 in reached


def _build_nasbench201(settings: Settings) -> Built:
    ops = nasbench201_ops(settings["cell"])
    channels = settings["widths"][0]
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
    for stage, out_channels in enumerate(settings["widths"]):
        if stage:
            layers.append(_Reduction(channels, out_channels))
        layers += [_Cell(out_channels, ops) for _ in range(settings["cells"])]
        channels = out_channels
    layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    layers.append(nn.Linear(channels, 10))
    return he_weights(nn.Sequential(*layers)), image(settings["resolution"])


NASBENCH201 = Family(
    "nasbench201",
    "NAS-Bench-201: any cell, five times in each of three stages; widths",
    _sample_nasbench201,
    _build_nasbench201,
)
