"""``nas-ext export`` of a converted RoBERTa: values are fairseq's, files need neither fairseq nor this project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.models.roberta import RobertaModel

from nas_core.files.reading import read_json
from nas_core.supernet import open_supernet
from tests.fairseq_ext.export.roberta import HEAD, LONGEST, PAD, build, convert, export, save, words

__all__ = ["words"]


def sentences(vocabulary: int, seed: int = 0) -> torch.Tensor:
    """Padding to the right, to the left, inside, and none."""
    stream = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, vocabulary, (4, 9), generator=stream)
    tokens[0, 5:] = PAD
    tokens[1, :3] = PAD
    tokens[2, 4] = PAD
    return tokens


def theirs(model: RobertaModel, tokens: torch.Tensor, head: str | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        features, _ = model(tokens, features_only=True)
        logits, _ = model(tokens, classification_head_name=head)
    return features, logits


PROGRAM = """
import json, sys
class Absent:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in ("fairseq", "fairseq_ext", "nas_core", "torch", "onnx"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
import onnxruntime
file = json.load(open("out/model.json"))["parts"]["encoder"]["file"]
session = onnxruntime.InferenceSession(f"out/{file}", providers=["CPUExecutionProvider"])
features, logits = session.run(["features", "logits"], {"tokens": np.load("tokens.npy")})
np.savez("out.npz", features=features, logits=logits)
"""
"""It can import nothing of fairseq and of this project."""


@pytest.mark.onnx
def test_exported_files(words: Path, tmp_path: Path) -> None:
    for name in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    model, task = build(words, classify=True, untie_weights_roberta=True)
    family = convert(save(model, task, tmp_path / "c.pt"))
    assert export(family, tmp_path / "out", "--arch", "largest") == 0
    tokens = sentences(len(task.source_dictionary), seed=5)
    np.save(tmp_path / "tokens.npy", tokens.numpy())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    outputs, read = np.load(tmp_path / "out.npz"), tokens.ne(PAD).numpy()
    features, logits = (wanted.numpy() for wanted in theirs(model, tokens, HEAD))
    np.testing.assert_allclose(outputs["features"][read], features[read], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-4, rtol=1e-4)
    info = read_json(tmp_path / "out" / "model.json")
    assert info["tokens"] == {"bos": 0, "pad": PAD, "eos": 2, "unk": 3, "mask": len(task.source_dictionary) - 1}
    assert info["architecture"] == open_supernet(family).space.largest().to_dict()
    assert info["limits"] == {"tokens": LONGEST} and info["parts"]["encoder"]["largest"] == {"length": LONGEST}
    listed = [line.rsplit(" ", 1)[0] for line in (tmp_path / "out" / "dict.txt").read_text().splitlines()]
    assert listed == task.source_dictionary.symbols[info["dictionary_first_index"] :]
    assert info["kind"] == "sentence_prediction" and info["classes"] == ["no", "yes"]


def test_classes_are_read_off_the_first_token(words: Path, tmp_path: Path) -> None:
    opened = open_supernet(convert(save(*build(words, classify=True), tmp_path / "c.pt")))
    exportable = opened.exportable(opened.space.largest())
    tokens = torch.tensor([[0, 5, 6, 2]])
    module = exportable.parts[0].module
    padded = {side: torch.nn.functional.pad(tokens, pad, value=PAD) for side, pad in (("l", (2, 0)), ("r", (0, 2)))}
    with torch.no_grad():
        alone, left, right = (module(x)[1] for x in (tokens, padded["l"], padded["r"]))
    torch.testing.assert_close(right, alone, atol=1e-5, rtol=1e-4)
    assert (left - alone).abs().max() > 0.01 and exportable.info["padding"].startswith("right")
