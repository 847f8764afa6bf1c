"""A supernet's training that is killed at random moments ends with the weights it would have had."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.hardening.killing import finished, killed_and_finished
from tests.timm_ext.running import train
from timm_ext.checkpoint import read_checkpoint


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_random_moments_it_ends_identically(npz: Path, tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        train(npz, folder, epochs=4, sampling="sandwich", mos="neuron")

    seconds = finished(partial(work, tmp_path / "whole"))
    killed_and_finished(partial(work, tmp_path / "cut"), tmp_path / "cut", seconds, seed=1)
    whole, cut = (read_checkpoint(tmp_path / name / "last.pt") for name in ("whole", "cut"))
    assert whole["epoch"] == cut["epoch"]
    for name, weight in whole["state_dict"].items():
        assert torch.equal(weight, cut["state_dict"][name]), name
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("whole", "cut")]
    assert files[0] == files[1]
