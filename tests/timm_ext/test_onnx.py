"""ONNX export of static networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import timm
import torch

from nas_core.space import Architecture
from tests.timm_ext.running import SPACE

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@pytest.mark.onnx
def test_a_mixed_network_runs_in_onnxruntime(tmp_path: Path) -> None:
    architecture = Architecture({**SPACE.largest(), "attention": ("softmax", "linear")})
    model = timm.create_model("mformer_small_supernet", subnet=architecture).eval()
    path, images = str(tmp_path / "model.onnx"), torch.randn(2, 3, 32, 32)
    torch.onnx.export(model, (images,), path, dynamo=True, dynamic_shapes=({0: "batch"},), verbose=False)
    session = onnxruntime.InferenceSession(path)
    more = torch.randn(5, 3, 32, 32)
    (output,) = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    np.testing.assert_allclose(output, model(more).detach().numpy(), atol=1e-5)
