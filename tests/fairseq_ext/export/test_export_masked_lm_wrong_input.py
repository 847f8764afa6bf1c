"""Checkpoints of RoBERTa that ``nas-ext export`` refuses, each in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_ext.supernets.roberta_export import check_supported
from nas_core.errors import ConfigError
from tests.fairseq_ext.export.roberta import HEAD, build, export, save, words
from tests.fairseq_ext.running import subnet

__all__ = ["words"]


@pytest.fixture
def refused(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """``refused(checkpoint, ...)``: the one line of an export that failed and left nothing."""

    def call(checkpoint: Path, *more: str) -> str:
        out = tmp_path / "refused"
        assert export(checkpoint, out, "--to", "torch-export", *more) == 2
        assert not out.exists()
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nas-ext")]
        return line

    return call


def test_wrong_input_is_one_line(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    checkpoint = save(*build(words), tmp_path / "c.pt")
    cut, empty, other = tmp_path / "cut.pt", tmp_path / "empty", tmp_path / "other"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    for folder in (empty, other):
        folder.mkdir()
    (other / "dict.txt").write_text("w0 1\n")
    subnet().save(tmp_path / "translation.json")
    assert "is not a checkpoint" in refused(cut)
    assert "no data folder" in refused(checkpoint, "--data", str(tmp_path / "none"))
    assert "dict.txt" in refused(checkpoint, "--data", str(empty))
    assert "size mismatch" in (line := refused(checkpoint, "--data", str(other))) and f"{other} is not" in line
    assert "roberta" in refused(checkpoint, "--arch", str(tmp_path / "translation.json"))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("quant_noise_pq", 0.1, "--quant-noise-pq 0.1"), ("encoder_learned_pos", False, "Sinusoidal")],
)
def test_settings_that_are_not_exported(
    option: str, value: Any, said: str, words: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    model, task = build(words, **{option: value})
    with pytest.raises(ConfigError, match=said):
        check_supported(model)
    assert said in refused(save(model, task, tmp_path / "c.pt"))


def test_other_models_and_tasks(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    model, task = build(words)
    line = refused(save(model, task, tmp_path / "task.pt", _name="multilingual_masked_lm"))
    assert "multilingual_masked_lm" in line and "masked_lm or sentence_prediction" in line
    model.args.arch = "transformer_lm"
    line = refused(save(model, task, tmp_path / "arch.pt"))
    assert "--arch transformer_lm" in line and "roberta*" in line


@pytest.mark.parametrize("change", ["dropped", "bias dropped", "classes"])
def test_a_head_without_its_weights_is_not_made_up(
    change: str, words: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    path = save(*build(words, classify=True), tmp_path / "c.pt")
    state = torch.load(path, weights_only=True)
    weights, prefix = state["model"], f"classification_heads.{HEAD}."
    if change == "classes":
        weights[f"{prefix}out_proj.weight"] = torch.zeros(3, 16)
        weights[f"{prefix}out_proj.bias"] = torch.zeros(3)
    for name in [name for name in weights if name.startswith(prefix)]:
        if change == "dropped" or (change == "bias dropped" and name.endswith("out_proj.bias")):
            del weights[name]
    torch.save(state, path)
    assert f"lacks weights of classification_heads.{HEAD}" in refused(path)


def test_damaged_settings_are_one_line(words: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    path = save(*build(words), tmp_path / "c.pt")
    whole = torch.load(path, weights_only=True)
    torch.save({**whole, "cfg": "none"}, path)
    assert "no settings under 'cfg'" in refused(path)
    task = {name: value for name, value in whole["cfg"]["task"].items() if name != "data"}
    torch.save({**whole, "cfg": {**whole["cfg"], "task": task}}, path)
    assert "no data folder" in refused(path)
