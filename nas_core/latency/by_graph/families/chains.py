"""AlexNet- and VGG-like networks: convolutions, then fully connected layers, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from nas_core.latency.by_graph.families.draws import draw, he_weights, resolution, width
from nas_core.latency.by_graph.families.family import Built, Family, Settings, image

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
    for index, (wide, kernel) in enumerate(zip(settings["widths"], settings["kernels"], strict=True)):
        layers += [nn.Conv2d(channels, wide, kernel, 1 if index else 4, kernel // 2), nn.ReLU()]
        if index in (0, 1, 4):
            layers.append(nn.MaxPool2d(3, 2))
        channels = wide
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
    for wide in hidden:
        layers += [nn.Linear(features, wide), nn.ReLU()]
        features = wide
    return [*layers, nn.Linear(features, _CLASSES)]


ALEXNET = Family(
    "alexnet", "five convolutions: widths, kernels 3 to 11, hidden layers", _sample_alexnet, _build_alexnet
)
VGG = Family("vgg", "five stages: widths, depths, kernels 3 and 5, batch norm or none", _sample_vgg, _build_vgg)
