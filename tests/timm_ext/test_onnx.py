"""ONNX export of static networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch

from nas_core.space import Architecture
from tests.timm_ext.running import SPACE

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")


pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{warning}")
    for warning in ("torch.jit.TracerWarning", "DeprecationWarning", "FutureWarning")
]
KINDS = ("softmax linear", "local softmax")
EXPORTS: dict[str, dict[str, Any]] = {
    "named": {"dynamo": True, "dynamic_shapes": ({0: "batch"},)},
    "dimension": {"dynamo": True, "dynamic_shapes": ({0: torch.export.Dim("batch")},)},
    "by tracing": {
        "dynamo": False, "input_names": ["x"], "output_names": ["y"],
        "dynamic_axes": {"x": {0: "batch"}, "y": {0: "batch"}},
    },
}  # fmt: skip


@pytest.mark.onnx
@pytest.mark.parametrize(("kinds", "export"), zip((*KINDS, KINDS[0]), EXPORTS, strict=True))
def test_a_mixed_network_runs_in_onnxruntime(kinds: str, export: str, tmp_path: Path) -> None:
    architecture = Architecture({**SPACE.largest(), "attention": kinds.split()})
    model = timm.create_model("mformer_cifar10_small_supernet", subnet=architecture).eval()
    path, images = str(tmp_path / "model.onnx"), torch.randn(2, 3, 32, 32)
    torch.onnx.export(model, (images,), path, verbose=False, **EXPORTS[export])
    session = onnxruntime.InferenceSession(path)
    more = torch.randn(5, 3, 32, 32)
    (output,) = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    np.testing.assert_allclose(output, model(more).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("kinds", KINDS)
def test_a_mixed_network_can_be_traced(kinds: str) -> None:
    architecture = Architecture({**SPACE.largest(), "attention": kinds.split()})
    model = timm.create_model("mformer_cifar10_small_supernet", subnet=architecture).eval()
    with torch.no_grad():
        traced = torch.jit.trace(model, torch.randn(2, 3, 32, 32))
        images = torch.randn(2, 3, 32, 32)
        torch.testing.assert_close(traced(images), model(images), atol=1e-5, rtol=0)
