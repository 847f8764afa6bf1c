"""``nas-ext compress`` of a small vision transformer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import timm_ext
from nas_core.cli import main
from tests.timm_ext.trained.tiny import save, vit

SETTINGS = ["--batch-size", "8", "--calibration-batches", "4", "--valid-samples", "6"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save(vit(), tmp_path / "trained.pt")


def compress(checkpoint: Path, data: Path | str, out: Path, *more: str) -> int:
    command = ["compress", "--checkpoint", str(checkpoint), "--data", str(data), "--out", str(out)]
    return main([*command, "--limit", "latency_ms=70%", "--updates", "100", *SETTINGS, *more])


def test_a_model_becomes_faster(
    checkpoint: Path, npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small.pt"
    assert compress(checkpoint, npz, out) == 0
    lines = capsys.readouterr().out.splitlines()
    end = next(index for index, line in enumerate(lines) if line.startswith("network"))
    original, *others = [re.split(r"\s{2,}", line) for line in lines[end + 2 :] if re.search(r"\S\s{2,}\S", line)]
    assert original[0] == "trained network" and original[2] == "1.00"
    assert [row[-1] for row in others] == ["0"] * (len(others) - 1) + ["100"]
    assert len(others) > 1 and others[-1][0] == others[-2][0]
    assert float(others[-1][2]) < 0.95, "measured latency of the compressed network, relative"
    model = timm_ext.load_model(out)
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 2)
    assert model.architecture.number("layers") <= 3
    assert sum(p.numel() for p in model.parameters()) < sum(p.numel() for p in vit().parameters())


def test_weights_before_a_harmful_training_are_kept(
    checkpoint: Path, npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compress(checkpoint, npz, tmp_path / "small.pt", "--lr", "0.3", "--updates", "8") == 0
    output = capsys.readouterr().out
    assert "training raised the loss" in output and "give an --lr below 0.3" in output
    rows = [re.split(r"\s{2,}", line) for line in output.splitlines()]
    before, after = [row for row in rows if len(row) > 5 and row[-1] == "0"][-2:]
    assert [*before[:1], *before[4:]] == [*after[:1], *after[4:]], "all but the latency"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--limit", "latency_ms=100%"], "below 100%"),
        (["--limit", "latency_ms=none"], "latency_ms=MILLISECONDS"),
        (["--limit", "params_m=1"], "latency_ms=MILLISECONDS"),
        (["--limit", "latency_ms=1e6"], "below 100%"),
        (["--limit", "latency_ms=1%"], "no network meets the limit of 1%"),
        (["--updates", "0"], "updates"),
        (["--batch-size", "1000"], "--batch-size"),
        (["--data", "nowhere"], "nowhere"),
        (["--checkpoint", "nowhere.pt"], "nowhere.pt"),
        (["--importance", "luck"], "importance"),
    ],
)
def test_wrong_input(
    checkpoint: Path, npz: Path, tmp_path: Path, change: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compress(checkpoint, npz, tmp_path / "small.pt", *change) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "small.pt").exists()


def test_no_data_and_an_existing_file(
    checkpoint: Path, npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compress", "--checkpoint", str(checkpoint), "--limit", "latency_ms=70%", "--out"]
    assert main([*command, str(tmp_path / "small.pt")]) == 2
    assert "--data" in capsys.readouterr().err
    assert main([*command, str(checkpoint), "--data", str(npz)]) == 2
    assert "exists" in capsys.readouterr().err
