"""The quickstart of images."""

from __future__ import annotations

import pytest

pytest.importorskip("timm", reason="needs timm: pip install 'nas-ext[timm]'")


from tests.contracts.quickstart import QuickstartContract
from timm_ext.quickstart import IMAGES

pytestmark = pytest.mark.timm


class TestImages(QuickstartContract):
    quickstart = IMAGES
    small = ("UPDATES=4", "EVALUATIONS=10")
    says = r"\d+% of 150 images right with 0\.\d\d M parameters; all networks tried: out/run/report.html"
    makes = ("out/supernet/best.pt", "out/run/report.html", "out/subnet.safetensors")
