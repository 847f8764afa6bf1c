"""ONNX files with and without weights, and networks with any inputs and outputs in both runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_graph.dataset.collect import collect_networks
from nas_core.latency.by_graph.dataset.export import ABSENT, calibrate, exported, without_weights
from nas_core.latency.by_graph.families.family import Family
from tests.latency.by_graph.dataset.tiny import CONFIG, TIMING, sample

pytestmark = pytest.mark.onnx


class _Shaped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(2048, 64)
        self.register_buffer("table", torch.randn(1, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.linear(self.conv(x).reshape(1, -1)) + self.table).clamp(-0.5, 0.5)


def test_without_weights_a_file_is_small_and_reads_the_same() -> None:
    import onnx

    content = exported(_Shaped().eval(), (torch.randn(1, 3, 16, 16),))
    light = without_weights(content)
    assert len(content) > 500_000 and len(light) < 4000
    full, read = read_onnx(content), read_onnx(light)
    assert read.flops_g == full.flops_g and read.params_m == full.params_m and read.operators == full.operators
    for name in ("ops", "edges", "attributes", "shapes", "static"):
        np.testing.assert_array_equal(getattr(read.graph, name), getattr(full.graph, name))
    model = onnx.load_model_from_string(light)
    external = [t for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    assert {t.external_data[0].value for t in external} == {ABSENT}
    assert {tuple(t.dims) for t in external} >= {(8, 3, 3, 3), (64, 2048)}
    onnx.shape_inference.infer_shapes(model, strict_mode=True)


def test_deep_networks_compute_with_ordinary_numbers() -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(30) for layer in (nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Tanh())]
    network = nn.Sequential(*layers).eval()
    for layer in network:
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
    x = torch.randn(1, 3 + 5, 8, 8)
    assert network(x).abs().max() < 1e-15, "as it is, activations vanish"
    (output,) = calibrate(network, (x,))
    assert 0.1 < output.abs().max() < 10
    torch.testing.assert_close(network(x), output)


class _Step(nn.Module):
    """A table, a mask, a position without dimensions, a cache, and an input that nothing reads."""

    def __init__(self, differs: bool = False) -> None:
        super().__init__()
        self.table, self.differs = nn.Embedding(50, 8), differs

    def forward(self, tokens: Tensor, unread: Tensor, mask: Tensor, position: Tensor, past: Tensor) -> Any:
        x = self.table(tokens).masked_fill(~mask[:, None], 0.0)
        after = torch.cat([past, x + position], 0)
        return x.sum(0), (2 * after if self.differs and torch.onnx.is_in_onnx_export() else after), mask, tokens + 1


def inputs() -> tuple[Tensor, ...]:
    mask = torch.tensor([True, False, True])
    return torch.tensor([3, 49, 7]), torch.randn(2), mask, torch.tensor(5), torch.randn(1, 8)


@pytest.mark.parametrize("differs", [False, True])
def test_every_output_is_compared(differs: bool, tmp_path: Any) -> None:
    family = Family("step", "", sample, lambda settings: (_Step(differs), inputs()))
    (row,) = collect_networks(tmp_path / "set", [family], 1, TIMING, CONFIG, progress=False).rows
    assert row.get("error") == ("the output in torch differs from that in onnxruntime" if differs else None)
