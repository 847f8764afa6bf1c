"""``nas-ext quickstart images``: synthetic images, and a script from supernet to a small timm model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nas_core.quickstart import Quickstart
from timm_ext.quickstart.textures import TEXTURES, texture_png

SIZES = {"train": 80, "val": 25}
class ImagesQuickstart(Quickstart):
    """Six textures: supernet, search, extraction, and the network as a timm model."""

    name = "images"
    purpose = "search a small image network, from an image folder to a timm model"
    templates = "timm_ext/quickstart/templates"
    modules = ("timm", "torchvision")
    script = "run.sh"
    extra = "timm"
    minutes = 2.0

    def data(self) -> Mapping[str, str | bytes]:
        rng = np.random.default_rng(0)
        return {
            f"images/{split}/{name}/{number:03d}.png": texture_png(name, rng)
            for split, count in SIZES.items()
            for name in TEXTURES
            for number in range(count)
        }
IMAGES = ImagesQuickstart()
