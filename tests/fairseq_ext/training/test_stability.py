"""Supernet training that ends when subnets keep their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.files.reading import read_json
from tests.fairseq_ext.running import passed

EPOCH = 4
"""Updates: 200 pairs in batches of 64."""


@pytest.fixture
def options(arguments: list[object], tmp_path: Path) -> list[object]:
    return [
        *arguments, "--task", "supernet_translation", "--sampling", "spos", "--mos", "none", "--lr", 0.01,
        "--batch-size", 64, "--save-dir", tmp_path, "--max-epoch", 5, "--stability-architectures", 6,
    ]  # fmt: skip


def test_training_stops_and_stays_stopped_and_a_later_one_does_not(options: list[object], tmp_path: Path) -> None:
    done = passed("train", *options, "--stability-tau", 0.05)
    assert "the ranking of subnets is stable, so training stops" in done.out
    taus = [float(line.split("tau ")[1].split()[0]) for line in done.out.splitlines() if "ranking of 6 subnets" in line]
    assert taus and taus[-1] > 0.05 and all(tau <= 0.05 for tau in taus[:-1])
    state = read_json(tmp_path / "stability.json")
    assert state["taus"] == pytest.approx(taus, abs=1e-4) and len(state["losses"]) == 6
    updates = read_checkpoint(tmp_path / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"]
    assert updates == EPOCH * (len(taus) + 1) < 5 * EPOCH
    passed("train", *options, "--stability-tau", 0.05)
    assert read_checkpoint(tmp_path / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] <= updates + 1

    content = (tmp_path / "stability.json").read_bytes()
    passed("train", *options, "--stability-architectures", 0, "--save-dir", tmp_path / "other", "--max-epoch", 2)
    state = read_checkpoint(tmp_path / "other" / "checkpoint_last.pt")
    assert state["optimizer_history"][-1]["num_updates"] == 2 * EPOCH
    assert (tmp_path / "stability.json").read_bytes() == content
