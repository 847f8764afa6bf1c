"""Example of a network family: MLP-Mixers."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from nas_core.adapters import Adapter
from nas_core.latency.by_graph.families.family import Built, Family, Settings, image


class MixerBlock(nn.Module):
    """Residual MLP along the channels, or along the patches, of ``(batch, patches, channels)``."""

    def __init__(self, channels: int, size: int, hidden: int, patches: bool) -> None:
        super().__init__()
        self.norm, self.patches = nn.LayerNorm(channels), patches
        self.mlp = nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Linear(hidden, size))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm(x)
        return x + (self.mlp(inner.transpose(1, 2)).transpose(1, 2) if self.patches else self.mlp(inner))


class Mixer(nn.Module):
    def __init__(self, resolution: int, patch: int, channels: int, layers: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, patch, patch)
        count = (resolution // patch) ** 2
        sizes = [(count, 2 * count, True), (channels, 4 * channels, False)] * layers
        self.layers = nn.Sequential(*(MixerBlock(channels, *size) for size in sizes))
        self.head = nn.Linear(channels, 1000)

    def forward(self, images: Tensor) -> Tensor:
        tokens: Tensor = self.layers(self.stem(images).flatten(2).transpose(1, 2))
        return self.head(tokens.mean(1))


def _sample(rng: np.random.Generator) -> Settings:
    return {
        "resolution": int(rng.choice([96, 128, 160])),
        "patch": int(rng.choice([8, 16])),
        "channels": int(rng.integers(4, 17)) * 8,
        "layers": int(rng.integers(2, 7)),
    }


def _build(settings: Settings) -> Built:
    return Mixer(**settings), image(settings["resolution"])


FAMILIES = (Family("mixer", "MLP-Mixers: resolution, patch, channels, layers", _sample, _build),)


class MixerAdapter(Adapter):
    """Offered as ``mixers = "package.module:ADAPTER"`` in the entry-point group ``nas_ext.hosts``."""

    name = "mixers"
    network_families = f"{__name__}:FAMILIES"


ADAPTER = MixerAdapter()
