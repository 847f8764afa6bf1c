"""What linear layers read and give in each precision, on each device."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.precision import computing_in, half_type
from nas_core.supernet.teacher.taps import Taps
from tests.devices import PRECISIONS


@pytest.mark.parametrize("precision", PRECISIONS)
def test_layers_under_autocast(precision: str, device: str) -> None:
    layer = nn.Linear(8, 4).to(device)
    x = torch.randn(2, 8, device=device)
    with computing_in(precision, device), Taps({"layer": layer.weight}, outputs=True) as taps:
        y = layer(x)
    assert taps.inputs["layer"][0] is x and taps.outputs["layer"][0] is y
    assert y.dtype == (half_type(precision) or torch.float) and y.requires_grad
