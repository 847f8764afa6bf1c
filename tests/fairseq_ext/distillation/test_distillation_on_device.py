"""Training with a teacher on any device, in the precisions that the device has."""

import math

import pytest
import torch

pytest.importorskip("fairseq")

from tests.fairseq_ext.distillation.teachers import CRITERION, SANDWICH, train_plain
from tests.fairseq_ext.running import passed


@pytest.mark.parametrize("teacher", ["plain", "supernet", "largest"])
def test_a_supernet_learns_in_every_precision(arguments, corpus, trained, device, tmp_path, teacher):
    names = {"plain": lambda: train_plain(corpus, tmp_path / "plain"), "largest": lambda: "largest"}
    path = names.get(teacher, lambda: trained("neuron"))()
    command = [argument for argument in arguments if argument != "--cpu" or device == "cpu"]
    losses = {}
    for flag in ["", *(["--fp16", "--amp"] if device != "cpu" else [])]:
        done = passed(
            "train", *command, *CRITERION, *SANDWICH, "--teacher", path, "--dropout", 0.0,
            "--valid-random", 0, "--fp16-init-scale", 8, *([flag] if flag else []), "--max-update", 4,
            "--save-dir", tmp_path / f"saved{flag}",
        )  # fmt: skip
        losses[flag] = [values["distill_loss"] for values in done.stats("train_inner")]
        assert len(losses[flag]) == 4 and all(map(math.isfinite, losses[flag])), losses
        assert losses[flag][0] == pytest.approx(losses[""][0], rel=0.05), losses
    if device != "cpu":
        assert torch.cuda.is_available()
