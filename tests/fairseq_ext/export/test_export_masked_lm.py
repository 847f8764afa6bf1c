"""``nas-ext export`` of fairseq's RoBERTa: values are fairseq's, files need neither fairseq nor this project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.models.roberta import RobertaModel

from nas_core.files.reading import read_json
from nas_core.supernet.host import open_exportable
from tests.fairseq_ext.export.roberta import HEAD, LONGEST, PAD, build, export, save, words

__all__ = ["words"]

VARIANTS: dict[str, dict[str, Any]] = {
    "relu, untied": {"activation_fn": "relu", "untie_weights_roberta": True},
    "norm first": {"encoder_normalize_before": True, "activation_fn": "gelu_accurate"},
    "scaled, layerdrop": {"no_scale_embedding": False, "encoder_layerdrop": 0.5},
}


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


def encoder(checkpoint: Path) -> torch.nn.Module:
    opened = open_exportable(checkpoint)
    return opened.exportable(opened.space.largest()).parts[0].module


@pytest.mark.parametrize("name", VARIANTS)
def test_values_are_fairseqs(name: str, words: Path, tmp_path: Path) -> None:
    model, task = build(words, **VARIANTS[name])
    module = encoder(save(model, task, tmp_path / "c.pt"))
    tokens = sentences(len(task.source_dictionary))
    for batch in (tokens, tokens[3:], tokens[:, :1].clamp(min=4)):  # all kinds of padding, and none
        with torch.no_grad():
            found = module(batch)
        for ours, wanted in zip(found, theirs(model, batch), strict=True):
            torch.testing.assert_close(ours[batch.ne(PAD)], wanted[batch.ne(PAD)], atol=2e-5, rtol=1e-4)
        assert all(torch.isfinite(output).all() for output in found)
    assert theirs(model, tokens)[1].std((0, 1)).mean() > 0.1, "the comparison would not notice a difference"


# -- files -------------------------------------------------------------------------------------------------------------

WITHOUT = """
import json, sys
class Absent:
    def find_spec(self, name, *rest):
        if name.split(".")[0] in {absent}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
folder = {folder!r}
model = json.load(open(folder + "/model.json"))
file, tokens = folder + "/" + model["parts"]["encoder"]["file"], np.load({tokens!r})
"""
READERS = {
    "onnx": (
        ("fairseq", "fairseq_ext", "nas_core", "torch", "onnx"),
        "import onnxruntime\n"
        "session = onnxruntime.InferenceSession(file, providers=['CPUExecutionProvider'])\n"
        "features, logits = session.run(['features', 'logits'], {'tokens': tokens})",
    ),
    "torch-export": (
        ("fairseq", "fairseq_ext", "nas_core"),
        "import torch\n"
        "program = torch.export.load(file).module()\n"
        "features, logits = (x.detach().numpy() for x in program(torch.from_numpy(tokens)))",
    ),
}


def elsewhere(to: str, folder: Path, tokens: torch.Tensor, scratch: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and logits by a program that can import nothing of fairseq and of this project."""
    absent, read = READERS[to]
    np.save(scratch / "tokens.npy", tokens.numpy())
    code = WITHOUT.format(absent=absent, folder=str(folder), tokens=str(scratch / "tokens.npy")) + read
    code += f"\nnp.savez({str(scratch / 'out.npz')!r}, features=features, logits=logits)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = np.load(scratch / "out.npz")
    return found["features"], found["logits"]


@pytest.mark.onnx
@pytest.mark.parametrize(("to", "head"), [("torch-export", None), ("onnx", HEAD)])
def test_exported_files(to: str, head: str | None, words: Path, tmp_path: Path) -> None:
    if to == "onnx":
        for name in ("onnx", "onnxruntime", "onnxscript"):
            pytest.importorskip(name, reason=f"{name} is not installed")
    model, task = build(words, classify=head is not None, untie_weights_roberta=to == "onnx")
    out = tmp_path / "out"
    assert export(save(model, task, tmp_path / "c.pt"), out, "--to", to) == 0
    tokens = sentences(len(task.source_dictionary), seed=5)
    found = elsewhere(to, out, tokens, tmp_path)
    read = tokens.ne(PAD).numpy()
    for ours, wanted in zip(found, theirs(model, tokens, head), strict=True):
        mask = read if wanted.ndim == 3 else slice(None)
        np.testing.assert_allclose(ours[mask], wanted.numpy()[mask], atol=1e-4, rtol=1e-4)
    info = read_json(out / "model.json")
    assert info["tokens"] == {"bos": 0, "pad": PAD, "eos": 2, "unk": 3, "mask": len(task.source_dictionary) - 1}
    assert info["architecture"] == open_exportable(tmp_path / "c.pt").space.largest().to_dict()
    assert info["architecture"]["encoder.ffn_dim"] == 24 and info["vocabulary"] == len(task.source_dictionary)
    assert info["limits"] == {"tokens": LONGEST} and info["parts"]["encoder"]["largest"] == {"length": LONGEST}
    listed = [line.rsplit(" ", 1)[0] for line in (out / "dict.txt").read_text().splitlines()]
    assert listed == task.source_dictionary.symbols[info["dictionary_first_index"] :]
    assert info["kind"] == ("masked_lm" if head is None else "sentence_prediction")
    assert info.get("classes") == (None if head is None else ["no", "yes"])


def test_classes_are_read_off_the_first_token(words: Path, tmp_path: Path) -> None:
    opened = open_exportable(save(*build(words, classify=True), tmp_path / "c.pt"))
    made = opened.exportable(opened.space.largest())
    tokens = torch.tensor([[0, 5, 6, 2]])
    module = made.parts[0].module
    padded = {side: torch.nn.functional.pad(tokens, pad, value=PAD) for side, pad in (("l", (2, 0)), ("r", (0, 2)))}
    with torch.no_grad():
        alone, left, right = (module(x)[1] for x in (tokens, padded["l"], padded["r"]))
    torch.testing.assert_close(right, alone, atol=1e-5, rtol=1e-4)
    assert (left - alone).abs().max() > 0.01 and made.info["padding"].startswith("right")
