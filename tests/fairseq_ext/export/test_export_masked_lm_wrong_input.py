"""Checkpoints of RoBERTa that ``nas-ext export`` rejects, each in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.fairseq_ext.export.roberta import HEAD, build, export, save, words
from tests.fairseq_ext.running import subnet

__all__ = ["words"]


def test_wrong_input_is_one_line(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = save(*build(words), tmp_path / "c.pt")
    model, task = build(words)
    model.args.arch = "transformer_lm"
    cut, other, headless = tmp_path / "cut.pt", tmp_path / "other", tmp_path / "headless.pt"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    other.mkdir()
    (other / "dict.txt").write_text("w0 1\n")
    subnet().save(tmp_path / "translation.json")
    content = torch.load(save(*build(words, classify=True), tmp_path / "classifier.pt"), weights_only=True)
    content["model"] = {name: x for name, x in content["model"].items() if HEAD not in name}
    torch.save(content, headless)
    for path, options, part in [
        (cut, [], "is not a checkpoint"),
        (checkpoint, ["--data", str(tmp_path / "none")], "data folder"),
        (checkpoint, ["--data", str(other)], "size mismatch"),
        (checkpoint, ["--arch", str(tmp_path / "translation.json")], "roberta"),
        (save(*build(words, quant_noise_pq=0.1), tmp_path / "noise.pt"), [], "--quant-noise-pq 0.1"),
        (save(model, task, tmp_path / "arch.pt"), [], "--arch transformer_lm"),
        (headless, [], f"no weights of classification head {HEAD!r}"),
    ]:
        assert export(path, tmp_path / "out", "--to", "torch-export", *options) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nas-ext")]
        assert part in line and not (tmp_path / "out").exists()
