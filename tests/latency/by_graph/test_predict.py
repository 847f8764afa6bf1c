"""Latency of torch modules and of ONNX models in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("onnx", reason="onnx is not installed")

from nas_core.graph import Graphs
from nas_core.latency.by_graph import shipped_model
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.predict import predict_module_latency, predict_networks, read_module
from nas_core.latency.by_graph.unseen import extrapolation_std
from tests.graph.onnx.models import residual
from tests.latency.by_graph.toy import CONV, RELU, toy_networks

pytestmark = pytest.mark.onnx


class Small(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = torch.relu(self.norm(self.conv(images)))
        return out


@pytest.fixture(scope="module")
def model() -> GraphLatencyModel:
    return CountsModel().fit(toy_networks())


def test_a_module_costs_what_its_operators_do(model: GraphLatencyModel) -> None:
    module = Small().train()
    module.norm.eval()
    prediction = predict_module_latency(module, torch.zeros(1, 3, 16, 16), model)
    assert prediction.name == "Small" and not prediction.unknown
    outputs = 8 * 256
    conv = (outputs * (2 * 27 + 1), outputs + 3 * 256 + 8 * 28)  # the batch norm is folded into it, with a bias
    relu = (outputs, 2 * outputs)
    expected = sum(
        model.prices[kind] + model.prices[32 + kind] * flops / 1e9 + model.prices[64 + kind] * access / 1e6
        for kind, (flops, access) in ((CONV, conv), (RELU, relu))
    )
    assert prediction.latency_ms == pytest.approx(expected + model.prices[-1], rel=1e-4)
    read = read_module(module, torch.zeros(1, 3, 16, 16))
    beyond = extrapolation_std(Graphs.of([read.graph]), model.info["ranges"])[0]  # it is small
    assert beyond > 0
    assert prediction.std_ms == pytest.approx(prediction.latency_ms * np.hypot(model.relative_std, beyond))
    assert module.training and not module.norm.training, "the module stays as it is"


def test_files_and_messages_give_the_same(model: GraphLatencyModel, tmp_path: Path) -> None:
    message = residual()
    path, saved = tmp_path / "net.onnx", tmp_path / "m.safetensors"
    path.write_bytes(message.SerializeToString())
    model.save(saved)
    first = predict_networks([message, path], model)
    second = predict_networks([path.read_bytes()], saved)
    assert {prediction.latency_ms for prediction in (*first, *second)} == {first[0].latency_ms}
    assert [prediction.name for prediction in first] == ["handmade", str(path)]
    assert predict_networks([path], model, batch=2)[0].flops_g == pytest.approx(2 * first[0].flops_g)


def test_the_default_is_the_shipped_model() -> None:
    module, image = Small().eval(), torch.zeros(1, 3, 64, 64)
    prediction = predict_module_latency(module, image)
    assert prediction == predict_module_latency(module, image, shipped_model()) and prediction.latency_ms > 0
    assert prediction.machine == str(shipped_model().info["machine"]["device_name"])


def test_a_prediction_far_beyond_the_training_is_marked() -> None:
    tiny = predict_module_latency(nn.Linear(4, 4), torch.zeros(1, 4))
    assert "GFLOPs 3.6e-08 where training networks have" in tiny.out_of_range
    assert tiny.std_ms > tiny.latency_ms
    usual = nn.Sequential(nn.Conv2d(3, 64, 7), nn.ReLU(), nn.Conv2d(64, 128, 3))
    assert not predict_module_latency(usual, torch.zeros(1, 3, 64, 64)).out_of_range
