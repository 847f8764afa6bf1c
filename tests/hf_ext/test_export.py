"""Export of encoders and image classifiers as ONNX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.cli import main
from nas_core.supernet import open_supernet
from tests.hf_ext.test_conversion import batch
from tests.hf_ext.tiny import save

pytest.importorskip("onnxscript")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BertModel", {}),
        ("RobertaForSequenceClassification", {"type_vocab_size": 1}),
        ("ViTForImageClassification", {"image_size": 16, "patch_size": 8, "num_channels": 3}),
    ],
)
def test_a_folder_runs_in_onnxruntime(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    import onnxruntime
    import transformers

    folder = save(name, tmp_path / "trained", **settings)
    assert main(["export", "--checkpoint", str(folder), "--out", str(tmp_path / "out")]) == 0
    model = getattr(transformers, name).from_pretrained(folder).eval()
    inputs = {"pixel_values": torch.randn(2, 3, 16, 16)} if "num_channels" in settings else batch()
    if name == "BertModel":
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    assert [value.name for value in session.get_inputs()] == list(inputs)
    with torch.no_grad():
        expected = model(**inputs)[0]
    (output, *_) = session.run(None, {key: value.numpy() for key, value in inputs.items()})
    seen = slice(None) if expected.ndim < 3 else inputs["attention_mask"].bool()
    torch.testing.assert_close(torch.from_numpy(output)[seen], expected[seen], atol=1e-4, rtol=1e-4)


def test_a_subnet_is_exported(family: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["export", "--checkpoint", str(family), "--arch", "smallest", "--out", str(out)]) == 0
    content = json.loads((out / "model.json").read_text())
    assert content["architecture"] == open_supernet(family).space.smallest().to_dict()
    assert content["parts"]["model"]["difference_to_torch"] < 1e-4


def test_decoders_are_rejected(decoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--checkpoint", str(decoder), "--arch", "smallest", "--out", str(tmp_path / "out")]) == 2
    assert "OnnxExporter" in capsys.readouterr().err and not (tmp_path / "out").exists()
