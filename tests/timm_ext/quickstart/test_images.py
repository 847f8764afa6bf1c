"""The quickstart of images."""

from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("timm", reason="needs timm: pip install 'nas-ext[timm]'")

from PIL import Image

from tests.contracts.quickstart import QuickstartContract
from timm_ext.quickstart import IMAGES
from timm_ext.quickstart.textures import TEXTURES, texture_png

pytestmark = pytest.mark.timm


class TestImages(QuickstartContract):
    quickstart = IMAGES
    small = {"UPDATES": "4", "EVALUATIONS": "4"}
    says = r"\d+% of 150 images right with 0\.\d\d M parameters; all networks tried: out/run/report.html"
    makes = ("out/supernet/best.pt", "out/run/report.html", "out/subnet.safetensors")


@pytest.mark.parametrize("name", TEXTURES)
def test_no_two_images_of_a_texture_are_the_same(name: str) -> None:
    rng = np.random.default_rng(3)
    images = [Image.open(io.BytesIO(texture_png(name, rng))) for _ in range(5)]
    assert {image.size for image in images} == {(32, 32)} and {image.mode for image in images} == {"RGB"}
    assert len({image.tobytes() for image in images}) == 5
    assert all(np.asarray(image).std() > 20 for image in images)
