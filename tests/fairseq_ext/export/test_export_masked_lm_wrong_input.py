"""Checkpoints of RoBERTa that ``nas-ext export`` rejects, each in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fairseq_ext.export.roberta import HEAD, build, export, save, words
from tests.fairseq_ext.running import subnet

__all__ = ["words"]


def changed(path: Path, **groups: Any) -> Path:
    """A copy of a checkpoint with other settings."""
    content = torch.load(path, weights_only=True)
    torch.save({**content, "cfg": {**content["cfg"], **groups}}, path.with_name("changed.pt"))
    return path.with_name("changed.pt")


def without_head(path: Path, dropped: str) -> Path:
    content = torch.load(path, weights_only=True)
    prefix = f"classification_heads.{HEAD}."
    content["model"] = {name: x for name, x in content["model"].items() if not name.startswith(prefix + dropped)}
    if not dropped.endswith("bias"):
        content["model"] |= {f"{prefix}out_proj.weight": torch.zeros(3, 16), f"{prefix}out_proj.bias": torch.zeros(3)}
    torch.save(content, path.with_name("head.pt"))
    return path.with_name("head.pt")


def test_wrong_input_is_one_line(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = save(*build(words), tmp_path / "c.pt")
    classifier = save(*build(words, classify=True), tmp_path / "classifier.pt")
    model, task = build(words)
    model.args.arch = "transformer_lm"
    cut, empty, other = tmp_path / "cut.pt", tmp_path / "empty", tmp_path / "other"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    for folder in (empty, other):
        folder.mkdir()
    (other / "dict.txt").write_text("w0 1\n")
    subnet().save(tmp_path / "translation.json")
    lacks = f"lacks weights of classification_heads.{HEAD}"
    settings = {name: value for name, value in vars(task.cfg).items() if name != "data"}
    for path, options, part in [
        (cut, [], "is not a checkpoint"),
        (checkpoint, ["--data", str(tmp_path / "none")], "no data folder"),
        (checkpoint, ["--data", str(empty)], "dict.txt"),
        (checkpoint, ["--data", str(other)], "size mismatch"),
        (checkpoint, ["--arch", str(tmp_path / "translation.json")], "roberta"),
        (save(*build(words, quant_noise_pq=0.1), tmp_path / "noise.pt"), [], "--quant-noise-pq 0.1"),
        (save(*build(words, encoder_learned_pos=False), tmp_path / "computed.pt"), [], "positions that are computed"),
        (save(*build(words), tmp_path / "task.pt", _name="multilingual_masked_lm"), [], "masked_lm or sentence_predic"),
        (save(model, task, tmp_path / "arch.pt"), [], "--arch transformer_lm"),
        (without_head(classifier, "out_proj.bias"), [], lacks),
        (changed(checkpoint, task={**settings, "_name": "masked_lm"}), [], "no data folder"),
    ]:
        assert export(path, tmp_path / "out", "--to", "torch-export", *options) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nas-ext")]
        assert part in line and not (tmp_path / "out").exists()
    assert export(without_head(classifier, ""), tmp_path / "out", "--to", "torch-export") == 2
    assert lacks in capsys.readouterr().err
    content = torch.load(checkpoint, weights_only=True)
    torch.save({**content, "cfg": "none"}, checkpoint)
    assert export(checkpoint, tmp_path / "out", "--to", "torch-export") == 2
    assert "no settings under 'cfg'" in capsys.readouterr().err
