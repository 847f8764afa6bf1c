"""Two workers start with a converted supernet, and continue its training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.cli import main
from tests.fairseq_ext.elastic.conftest import FORMS
from tests.fairseq_ext.running import USER_DIR
from tests.fairseq_ext.training.ranks import two_workers


@pytest.mark.slow
def test_all_workers_have_the_weights_of_the_file(
    transformer: Callable[..., Path], joined: Path, tmp_path: Path
) -> None:
    given = ["elastic", "--checkpoint", transformer(*FORMS["post-norm"]), "--data", joined]
    assert main([*map(str, given), "--out", str(tmp_path / "supernet.pt")]) == 0
    command = [
        joined, "--user-dir", USER_DIR, "--task", "supernet_translation", "--arch", "hat_transformer",
        "--finetune-from-model", tmp_path / "supernet.pt", "--optimizer", "sgd", "--batch-size", 16, "--cpu",
        "--num-workers", 0, "--disable-validation", "--criterion", "label_smoothed_cross_entropy",
        "--save-dir", tmp_path / "saved",
    ]  # fmt: skip
    begun = two_workers(tmp_path, [*command, "--lr", 1e-9, "--max-update", 1])
    weights = read_checkpoint(tmp_path / "supernet.pt")["model"]
    for rank in begun:
        torch.testing.assert_close(dict(rank["model"]), dict(weights))
    saved = read_checkpoint(tmp_path / "saved" / "checkpoint_last.pt")
    assert not saved["cfg"]["checkpoint"]["load_checkpoint_on_all_dp_ranks"], "an option that was not given is kept"
    # the same command again continues the training
    first, second = two_workers(tmp_path, [*command, "--lr", 0.5, "--max-update", 2])
    assert len(first["drawn"]) == len(second["drawn"]) == 1
    torch.testing.assert_close(first["model"], second["model"], rtol=0, atol=0)
