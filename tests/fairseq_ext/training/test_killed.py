"""A supernet's training by fairseq that is killed at random moments ends with the weights it would have had."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from zipfile import is_zipfile

import pytest
import torch
from fairseq import checkpoint_utils

from tests.fairseq_ext.running import passed
from tests.hardening.killing import finished, killed_and_finished


def thirds(folder: Path) -> list[int]:
    """The updates after which weights were kept, up to the last one that is there."""
    kept = [int(path.stem.rpartition("_")[2]) for path in folder.glob("checkpoint_*_*.pt")]
    return list(range(3, max(kept, default=0) + 1, 3))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_random_moments_it_ends_identically(arguments: list[object], tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        last = folder / "checkpoint_last.pt"
        if last.exists() and not is_zipfile(last):  # fairseq was killed while it copied the file
            last.unlink()
        passed(
            "train", *arguments, "--task", "supernet_translation", "--mos", "neuron", "--sampling", "sandwich",
            "--max-update", 12, "--save-interval-updates", 3, "--keep-interval-updates", 1, "--disable-validation",
            "--save-dir", folder,
        )  # fmt: skip

    finished(partial(work, tmp_path / "whole"))
    killed_and_finished(partial(work, tmp_path / "cut"), lambda: thirds(tmp_path / "cut"), 4, seed=1)
    files = [str(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "cut")]
    full, cut = map(checkpoint_utils.load_checkpoint_to_cpu, files)
    assert full["optimizer_history"][-1]["num_updates"] == cut["optimizer_history"][-1]["num_updates"] == 12
    for name, weight in full["model"].items():
        assert torch.equal(weight, cut["model"][name]), name
