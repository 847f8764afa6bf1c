"""Latency models of whole networks on models of timm."""

from __future__ import annotations

import pytest
import timm
import torch

from nas_core.latency.by_graph import CountsModel
from nas_core.latency.by_graph.predict import predict_module_latency
from tests.latency.by_graph.toy import toy_networks

pytest.importorskip("onnx", reason="onnx is not installed")


@pytest.mark.onnx
@pytest.mark.parametrize("name", ["resnet18", "mobilenetv3_small_050", "vit_tiny_patch16_224"])
def test_models_of_timm_are_predicted(name: str) -> None:
    model = CountsModel().fit(toy_networks())
    network = timm.create_model(name)
    found = predict_module_latency(network, torch.zeros(1, 3, 224, 224), model)
    assert not found.unknown and found.latency_ms > 0 and network.training
    params = sum(p.numel() for p in network.parameters()) / 1e6
    assert found.params_m == pytest.approx(params, rel=0.05)
