"""Networks without weights have the graphs of networks with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_graph.dataset.export import exported, without_weights
from nas_core.latency.by_graph.published.export import exported_without_weights, without_storage
from tests.latency.by_graph.published.tiny import conv

pytestmark = pytest.mark.onnx
PARTS = ("ops", "edges", "attributes", "shapes", "costs", "static")


class Attending(nn.Module):
    """Has a position of its own, a buffer of indices, and equal parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.zeros(1, 16, 24))
        nn.init.trunc_normal_(self.position)
        self.bias = nn.Parameter(torch.zeros(49, 1))
        self.register_buffer("index", torch.arange(256).reshape(16, 16) % 49, persistent=False)
        self.patches, self.norm = nn.Conv2d(3, 24, 4, 4), nn.LayerNorm(24)
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        scores = query @ key.transpose(1, 2) + self.bias[self.index.reshape(-1)].reshape(16, 16)
        out: Tensor = self.out(scores.softmax(-1) @ value)
        return out.mean(1)


@pytest.mark.parametrize("make", [lambda: conv(12), Attending], ids=["convolutions", "attention"])
def test_the_same_graph(make: object) -> None:
    inputs = (torch.randn(1, 3, 16, 16),)
    full = make().eval()  # type: ignore[operator]
    with without_storage():
        light = make().eval()  # type: ignore[operator]
    sizes = [parameter.untyped_storage().nbytes() for parameter in light.parameters()]
    assert sizes == [4] * len(sizes)
    first = read_onnx(without_weights(exported(full, inputs)), warn=False)
    second = read_onnx(exported_without_weights(light, inputs), warn=False)
    assert first.operators == second.operators and first.params_m == second.params_m > 0
    for part in PARTS:
        np.testing.assert_array_equal(getattr(first.graph, part), getattr(second.graph, part), part)
    eight = read_onnx(exported_without_weights(light, inputs, batch=8), warn=False)
    assert eight.flops_g == pytest.approx(8 * first.flops_g) and eight.params_m == first.params_m
    assert eight.graph.shapes is not None and set(eight.graph.shapes[:, 0].tolist()) == {8}


def test_a_network_of_any_size() -> None:
    with without_storage():
        network = nn.Linear(2**14, 2**14)
        with torch.no_grad():
            network.weight[:5] = 1.0
            network.weight.data.normal_().mul_(2)
    assert network.weight.shape == (2**14, 2**14) and network.weight.untyped_storage().nbytes() == 4
    ordinary = nn.Linear(8, 8)
    assert len(ordinary.weight.unique()) > 1, "after the block all is as before"
