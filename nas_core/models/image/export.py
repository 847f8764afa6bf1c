"""Export of an image network."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.export.parts import ExportModule, OpenDim, Value
from nas_core.models.image.net import VisionNet
from nas_core.models.static import SubnetModule
from nas_core.space import Architecture
from nas_core.space.image import static_image_space


class ImageModel(SubnetModule):
    """Module from images ``(B, channels, height, width)`` to logits, or to features if there is no classifier."""

    def forward(self, images: Tensor) -> tuple[Tensor]:
        return (self.net(self.net.select(self.architecture, validated=True), images),)


def image_part(net: VisionNet, architecture: Architecture, height: int, width: int) -> ExportModule:
    """Return the subnet of an architecture as a part of an export, for images of this size in pixels."""
    static = VisionNet(static_image_space(architecture), net.config.static())
    static.load_state_dict(net.static_state(architecture))
    module = ImageModel(static.eval(), architecture)
    images = Value("images", ("batch", net.config.channels, height, width))
    with torch.no_grad():
        (output,) = module(torch.zeros(1, net.config.channels, height, width))
    name = "features" if static.head is None else "logits"
    return ExportModule("model", module, (images,), (Value(name, ("batch", *output.shape[1:])),), (OpenDim("batch"),))
