"""Supernet training that ends when subnets keep their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.files import read_json
from tests.fairseq_ext.running import run

EPOCH = 13
"""Updates: 200 pairs in batches of 16."""


@pytest.fixture
def options(arguments: list[object], tmp_path: Path) -> list[object]:
    return [
        *arguments, "--task", "supernet_translation", "--sampling", "spos", "--mos", "none", "--lr", 0.01,
        "--save-dir", tmp_path, "--max-epoch", 5, "--stability-architectures", 6,
    ]  # fmt: skip


def test_training_stops_and_stays_stopped(options: list[object], tmp_path: Path) -> None:
    done = run("train", *options, "--stability-tau", 0.05)
    assert done.code == 0, done.err
    assert "the ranking of subnets is stable: training stops" in done.out
    taus = [float(line.split("tau ")[1].split()[0]) for line in done.out.splitlines() if "ranking of 6 subnets" in line]
    assert taus
    assert taus[-1] > 0.05
    assert all(tau <= 0.05 for tau in taus[:-1])
    state = read_checkpoint(tmp_path / "checkpoint_last.pt")
    kept = read_json(tmp_path / "stability.json")
    assert kept["taus"] == pytest.approx(taus, abs=1e-4)
    assert len(kept["losses"]) == 6
    updates = state["optimizer_history"][-1]["num_updates"]
    assert updates == EPOCH * (len(taus) + 1) < 5 * EPOCH
    again = run("train", *options, "--stability-tau", 0.05)
    assert again.code == 0, again.err
    assert read_checkpoint(tmp_path / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] <= updates + 1


def test_a_later_training_of_the_process_is_not_stopped(options: list[object], tmp_path: Path) -> None:
    assert run("train", *options, "--stability-tau", 0.05).code == 0
    known = (tmp_path / "stability.json").read_bytes()
    later = run("train", *options, "--stability-architectures", 0, "--save-dir", tmp_path / "other", "--max-epoch", 2)
    assert later.code == 0, later.err
    state = read_checkpoint(tmp_path / "other" / "checkpoint_last.pt")
    assert state["optimizer_history"][-1]["num_updates"] == 2 * EPOCH
    assert (tmp_path / "stability.json").read_bytes() == known


def test_it_goes_on_while_the_order_changes(options: list[object], tmp_path: Path) -> None:
    done = run("train", *options, "--stability-tau", 1.0, "--stability-patience", 9, "--max-epoch", 3)
    assert done.code == 0, done.err
    assert done.out.count("ranking of 6 subnets") == 2
    assert "training stops" not in done.out


def test_wrong_settings_are_told_in_one_line(options: list[object]) -> None:
    done = run("train", *options, "--stability-tau", 1.5)
    assert done.code != 0
    assert "above 0 and up to 1" in done.err.strip().splitlines()[-1]
