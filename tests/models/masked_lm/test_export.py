"""The exported masked language model, run by onnxruntime, against the supernet it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.export import write_export
from nas_core.export.parts import Exportable
from nas_core.models.masked_lm.export import encoder_part
from nas_core.space import Architecture
from tests.models.masked_lm.tiny import MIXED, SPACE, build, sentences

_, onnxruntime, _ = (
    pytest.importorskip(name, reason=f"{name} is not installed") for name in ("onnx", "onnxruntime", "onnxscript")
)
EACH = Architecture({**MIXED.largest().to_dict(), "attention": ["softmax", "linear", "softmax"]})
pytestmark = pytest.mark.onnx


@pytest.mark.parametrize(
    ("form", "architecture", "head"),
    [
        ("roberta", SPACE.largest(), None),
        ("untied", SPACE.smallest(), "topic"),
        ("sinusoids", SPACE.smallest(), None),
        ("prenorm", EACH, None),
    ],
)
def test_files_compute_what_the_supernet_does(
    form: str, architecture: Architecture, head: str | None, tmp_path: Path
) -> None:
    net = build(form, MIXED if architecture is EACH else SPACE)
    part = encoder_part(net, architecture, head, 12)
    written = write_export(Exportable((part,), {"kind": "masked_lm"}), tmp_path / "out")
    assert 0 <= max(written.differences.values()) < 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "out" / "encoder.onnx", providers=["CPUExecutionProvider"])
    tokens = sentences()
    features, logits = session.run(None, {"tokens": tokens.numpy()})
    with torch.no_grad():
        subnet = net.select(architecture)
        expected = net.encode(subnet, tokens)
        supernet_output = net.predict(subnet, expected) if head is None else net.classify(subnet, expected, head)
    np.testing.assert_allclose(features, expected, atol=1e-4)
    np.testing.assert_allclose(logits, supernet_output, atol=1e-4)


def test_attention_that_is_made_for_a_longest_sequence_limits_it() -> None:
    net = build(space=MIXED, linear_length=7)
    longest = {dim.name: dim.largest for dim in encoder_part(net, EACH, None, 12).dims}
    assert longest["length"] == 7
    softmax = {dim.name: dim.largest for dim in encoder_part(net, MIXED.largest(), None, 12).dims}
    assert softmax["length"] == 12
