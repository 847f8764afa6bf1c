"""Quickstart project with synthetic images, for ``nas-ext quickstart images``."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nas_core.quickstart import Quickstart

IMAGES_PER_CLASS = {"train": 80, "val": 25}
PIXELS = 32
TEXTURES = ("bars", "checks", "diagonals", "dots", "rings", "stripes")


def texture_png(name: str, rng: np.random.Generator) -> bytes:
    """Return a random image of a texture as a PNG file of 32 x 32 pixels."""
    period, shift = rng.uniform(5, 9), rng.uniform(0, 9, 2)
    y, x = np.mgrid[:PIXELS, :PIXELS] + shift[:, None, None]
    share = 0.5 + 0.5 * _wave(name, 2 * np.pi * x / period, 2 * np.pi * y / period, shift)
    dark, light = rng.uniform(0, 90, 3), rng.uniform(150, 255, 3)
    if rng.random() < 0.5:
        dark, light = light, dark
    pixels = dark + (light - dark) * share[..., None] + rng.normal(0, 25, (PIXELS, PIXELS, 3))
    file = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def _wave(name: str, x: NDArray[np.float64], y: NDArray[np.float64], shift: NDArray[np.float64]) -> NDArray[np.float64]:
    if name == "rings":
        return np.sin(np.hypot(x - x.mean() - shift[0] / 3, y - y.mean() + shift[1] / 3))
    if name == "dots":
        return 2.0 * (np.sin(x) + np.sin(y) > 1.1) - 1
    waves = {"bars": np.sin(x), "stripes": np.sin(y), "diagonals": np.sin((x + y) / np.sqrt(2))}
    return waves[name] if name in waves else np.sign(np.sin(x) * np.sin(y))


def data() -> Mapping[str, str | bytes]:
    """Return PNG files of six textures."""
    rng = np.random.default_rng(0)
    return {
        f"images/{split}/{name}/{number:03d}.png": texture_png(name, rng)
        for split, count in IMAGES_PER_CLASS.items()
        for name in TEXTURES
        for number in range(count)
    }


IMAGES = Quickstart(
    "images", "search a small image network, from an image folder to a timm model", "timm_ext/quickstart/templates",
    data, modules=("timm", "torchvision"), extra="timm", minutes=2.0,
)  # fmt: skip
