"""Checkpoints of masked language models that ``nas-ext export`` rejects, each in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fairseq_ext.export.roberta import build, convert, export, save, words
from tests.fairseq_ext.running import subnet

__all__ = ["words"]


def test_wrong_input_is_one_line(words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = save(*build(words), tmp_path / "c.pt")
    family, cut, other = convert(checkpoint), tmp_path / "cut.pt", tmp_path / "other"
    cut.write_bytes(family.read_bytes()[:-2000])
    other.mkdir()
    (other / "dict.txt").write_text("w0 1\n")
    subnet().save(tmp_path / "translation.json")
    capsys.readouterr()
    for path, options, part in [
        (cut, [], "is not a checkpoint"),
        (checkpoint, [], "converted by 'nas-ext elastic'"),
        (family, ["--data", str(tmp_path / "none")], "data folder"),
        (family, ["--data", str(other)], "does not fit"),
        (family, ["--arch", str(tmp_path / "translation.json")], "architecture"),
    ]:
        assert export(path, tmp_path / "out", "--to", "torch-export", "--arch", "largest", *options) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("nas-ext")]
        assert part in line and not (tmp_path / "out").exists()
