"""A host of small supernets that compute on a device: a translation network and an image network with random weights.

A checkpoint is a JSON file that names the kind. Other processes find the host through its entry point.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.device import usable_device
from nas_core.models.image.net import VisionConfig, VisionNet
from nas_core.models.translation.net import TranslationNet
from nas_core.precision import PRECISIONS, computing_in
from nas_core.space import Architecture, SearchSpace, translation_space
from nas_core.space.image import image_space
from nas_core.supernet.host import Host, Supernet

__all__ = ["HOST", "IMAGES", "KINDS", "TRANSLATION", "DeviceSupernet"]

TRANSLATION = translation_space(
    "device_translation",
    embed_dims=(16, 8),
    ffn_dims=(32, 16),
    heads=(2, 1),
    encoder_layers=(2,),
    decoder_layers=(2, 1),
    qkv_dim=8,
)
IMAGES = image_space(
    "device_images",
    image_size=8,
    patch_size=4,
    embed_dims=(16, 32),
    ffn_dims=(32, 64),
    heads=(1, 2),
    layers=(1, 2),
    head_dim=16,
)
KINDS = ("translation", "image")


class DeviceSupernet(Supernet):
    """Evaluates architectures by the loss of random data, equal on all devices."""

    def __init__(self, kind: str, device: str, precision: str) -> None:
        self.device, self.precision, self._kind = usable_device(device), precision, kind
        self.space: SearchSpace = TRANSLATION if kind == "translation" else IMAGES
        self.task: Mapping[str, Any] = {"kind": kind}
        generator = torch.Generator().manual_seed(0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net: nn.Module = (
                TranslationNet(TRANSLATION, 30, 30)
                if kind == "translation"
                else VisionNet(IMAGES, VisionConfig(classes=4))
            )
        self.net: Any = net.to(self.device).eval()
        words = torch.randint(4, 30, (3, 4, 6), generator=generator)
        images, labels = torch.randn(8, 3, 8, 8, generator=generator), torch.randint(0, 4, (8,), generator=generator)
        self._data = [x.to(self.device) for x in (words, images, labels)]

    @torch.inference_mode()
    def logits(self, architecture: Architecture) -> tuple[Tensor, Tensor]:
        """Logits ``(N, classes)`` and what they should have been ``(N,)``."""
        words, images, labels = self._data
        with computing_in(self.precision, self.device):
            subnet = self.net.select(self.space.validate(architecture))
            if self._kind == "image":
                return self.net(subnet, images), labels
            return self.net(subnet, words[0], words[1]).flatten(0, 1), words[2].flatten()

    def evaluate(self, architecture: Architecture, report: Any = None) -> dict[str, float]:
        logits, labels = self.logits(architecture)
        return {"loss": F.cross_entropy(logits.float(), labels).item()}

    def extract(self, architecture: Architecture, path: Path) -> int:
        raise NotImplementedError


class DeviceHost(Host):
    name = "device"
    precisions = PRECISIONS

    def recognises(self, checkpoint: Path) -> bool:
        return checkpoint.suffix == ".device"

    def open(self, checkpoint: Path, **options: Any) -> DeviceSupernet:
        kind = json.loads(checkpoint.read_text())["kind"]
        return DeviceSupernet(kind, options.get("device", "cpu"), options.get("precision", "fp32"))


HOST = DeviceHost()
