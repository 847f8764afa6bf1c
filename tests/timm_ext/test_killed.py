"""A supernet's training that is killed at random moments ends with the weights it would have had."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from nas_core.files.reading import read_json
from tests.hardening.killing import finished, killed_and_finished
from tests.timm_ext.running import train
from timm_ext.checkpoint import read_checkpoint


def epochs(folder: Path) -> list[object]:
    """The epochs whose weights are kept."""
    file = folder / "metrics.json"
    return read_json(file) if file.exists() and (folder / "last.pt").exists() else []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_random_moments_it_ends_identically(npz: Path, tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        train(npz, folder, epochs=4, sampling="sandwich", mos="neuron")

    finished(partial(work, tmp_path / "whole"))
    cut = tmp_path / "cut"
    killed_and_finished(partial(work, cut), lambda: epochs(cut), 4, seed=1)
    full, ended = (read_checkpoint(tmp_path / name / "last.pt") for name in ("whole", "cut"))
    assert full["epoch"] == ended["epoch"]
    for name, weight in full["state_dict"].items():
        assert torch.equal(weight, ended["state_dict"][name]), name
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("whole", "cut")]
    assert files[0] == files[1]
