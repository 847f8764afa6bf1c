"""Exported image models as graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch

from nas_core.graph import read_onnx
from nas_core.space import Architecture
from tests.timm_ext.running import SPACE

pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@pytest.mark.onnx
def test_every_operator_of_a_mixed_network_is_known(tmp_path: Path) -> None:
    architecture = Architecture({**SPACE.largest(), "attention": ("softmax", "linear")})
    model = timm.create_model("mformer_cifar10_small_supernet", subnet=architecture).eval()
    path = str(tmp_path / "model.onnx")
    torch.onnx.export(
        model, (torch.randn(2, 3, 32, 32),), path, dynamo=True, dynamic_shapes=({0: "batch"},), verbose=False
    )
    one, four = (read_onnx(path, batch=batch) for batch in (1, 4))
    assert not one.unknown and len(one.graph) > 40
    assert one.operators.count("Softmax") == 1, "the other attention is linear"
    assert one.graph.shapes is not None and one.graph.shapes[-1].tolist()[:2] == [1, model.num_classes]
    assert four.flops.sum() == 4 * one.flops.sum()
    params = sum(p.numel() for p in model.parameters())
    assert 0.9 * params < one.params_m * 1e6 < 1.2 * params
