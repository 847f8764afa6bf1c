"""Latency workload of an image architecture: one batch through its static network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nas_core.errors import check_choice
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.models.workload import OnePassSubnetWorkload, check_minimum, same_draws
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import static_image_space


@dataclass(frozen=True, kw_only=True)
class ImageWorkloadConfig:
    """Settings of the latency workload of an image network."""

    batch: int = 1
    """Images per pass."""
    classes: int = 10
    """Number of classes."""
    channels: int = 3
    """Channels of an image."""
    activation: str = "relu"
    """Activation of feed-forward layers, such as relu or gelu."""

    def __post_init__(self) -> None:
        check_minimum(self, batch=1, classes=1, channels=1)
        check_choice("activation", self.activation, ACTIVATIONS)


class ImageWorkload(OnePassSubnetWorkload):
    """Latency workload of a static network with random weights, in one component ``network``."""

    def __init__(
        self, space: SearchSpace, architecture: Architecture, config: ImageWorkloadConfig, device: str = "cpu"
    ) -> None:
        architecture = space.validate(architecture)
        with same_draws():
            net, inputs = static_net(architecture, config), images(architecture, config)
        super().__init__(net, architecture, inputs, device, VisionNet.__call__)


def static_net(architecture: Architecture, config: ImageWorkloadConfig) -> VisionNet:
    settings = VisionConfig(classes=config.classes, channels=config.channels, activation=config.activation)
    return VisionNet(static_image_space(architecture), settings).eval()


def images(architecture: Architecture, config: ImageWorkloadConfig) -> Tensor:
    side = architecture.number("image_size")
    return torch.randn(config.batch, config.channels, side, side)
