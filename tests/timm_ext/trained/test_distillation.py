"""Students learn from a frozen network, or from the largest subnet: losses and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.naive import naive_distillation_loss
from tests.timm_ext.running import config
from tests.timm_ext.trained.tiny import vit
from timm_ext import elastic, load_model
from timm_ext.train import Trainer
from timm_ext.trained.distillation import Teacher

NOT_NAMED = {"model": "", "search_space": "", "lr": 1e-3}


def student(npz: Path, output: Path, converted: Path, **changes: Any) -> Trainer:
    return Trainer(config(npz, output, **{**NOT_NAMED, "init": str(converted / "supernet.pt"), **changes}))


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1] * 8)


@pytest.mark.parametrize(("name", "temperature"), [("trained.pt", 1.0), ("supernet.pt", 3.0)])
def test_the_loss_is_of_labels_and_of_the_teacher(
    name: str, temperature: float, npz: Path, converted: Path, tmp_path: Path
) -> None:
    trainer = student(npz, tmp_path / "run", converted, teacher=str(converted / name), distill_weight=0.25,
                      distill_temperature=temperature)  # fmt: skip
    images, labels = batch()
    trainer.model.train()
    (loss,) = trainer.train_step(images, labels, 0)
    repeated = student(npz, tmp_path / "run", converted).model.eval()
    with repeated.use_architecture(repeated.draw(0)):
        logits = repeated(images)
    kl = naive_distillation_loss(logits, load_model(converted / "supernet.pt")(images), temperature)
    assert float(loss) == pytest.approx(float(0.75 * F.cross_entropy(logits, labels) + 0.25 * kl), rel=1e-4)


def test_the_largest_subnet_teaches_the_others(npz: Path, converted: Path, tmp_path: Path) -> None:
    images, labels = batch()
    losses = {}
    for weight in (1.0, 0.0):
        trainer = student(
            npz, tmp_path / "run", converted, teacher="largest", sampling="sandwich", distill_weight=weight
        )
        trainer.model.train()
        losses[weight] = [float(3 * loss) for loss in trainer.train_step(images, labels, 0)]
    model = student(npz, tmp_path / "run", converted).model.eval()
    with model.use_architecture(model.space.largest()):
        full = model(images)
    with model.use_architecture(model.space.smallest()):
        small = model(images)
    assert losses[1.0][0] == pytest.approx(float(F.cross_entropy(full, labels)), rel=1e-4)
    assert losses[1.0][2] == pytest.approx(float(naive_distillation_loss(small, full)), rel=1e-4)
    assert losses[0.0][2] == pytest.approx(float(F.cross_entropy(small, labels)), rel=1e-4)


def test_the_teachers_images_have_its_own_normalisation(converted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pt"
    elastic(vit(pretrained_cfg_overlay={"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}), out=other)
    model = load_model(converted / "supernet.pt")
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1), torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    logits = Teacher(other, model, torch.device("cpu"), "fp32").logits((pixels - 0.2) / 0.5)
    torch.testing.assert_close(logits, load_model(other)((pixels - mean) / std), atol=1e-4, rtol=1e-4)
