"""Students learn from a frozen network, or from the largest subnet: losses, files, and the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import DataError, NasExtError
from nas_core.supernet.teacher.losses import naive_distillation_loss
from tests.timm_ext.running import config, train
from tests.timm_ext.trained.tiny import vit
from timm_ext import elastic, load_model
from timm_ext.train import Trainer
from timm_ext.trained.distillation import Teacher, capture, layer_pairs

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
    with repeated.using(repeated.draw(0)):
        logits = repeated(images)
    kl = naive_distillation_loss(logits, load_model(converted / "supernet.pt")(images), temperature)
    assert float(loss) == pytest.approx(float(0.75 * F.cross_entropy(logits, labels) + 0.25 * kl), rel=1e-4)


def test_the_largest_subnet_teaches_the_others(npz: Path, converted: Path, tmp_path: Path) -> None:
    images, labels = batch()
    losses = {}
    for weight, layers in ((1.0, 1.0), (0.0, 0.0)):
        trainer = student(npz, tmp_path / "run", converted, teacher="largest", sampling="sandwich",
                          distill_weight=weight, distill_hidden=layers, distill_attention=layers)  # fmt: skip
        trainer.model.train()
        losses[weight] = [float(3 * loss) for loss in trainer.train_step(images, labels, 0)]
    model = student(npz, tmp_path / "run", converted).model.eval()
    with model.using(model.space.largest()):
        full = model(images)
    with model.using(model.space.smallest()):
        small = model(images)
    assert losses[1.0][0] == pytest.approx(float(F.cross_entropy(full, labels)), rel=1e-4)
    assert losses[1.0][2] > float(naive_distillation_loss(small, full))
    assert losses[0.0][2] == pytest.approx(float(F.cross_entropy(small, labels)), rel=1e-4)


@pytest.mark.parametrize("which", ["distill_hidden", "distill_attention"])
def test_activations_of_paired_layers_are_compared(which: str, npz: Path, converted: Path, tmp_path: Path) -> None:
    """The largest subnet equals a teacher of its own weights; a smaller one learns to differ less."""
    options: dict[str, Any] = {"teacher": str(converted / "supernet.pt"), "distill_weight": 0.0, which: 100.0}
    trainer = student(npz, tmp_path / "run", converted, **options)
    images, labels = batch()
    model, distillation = trainer.model.eval(), trainer.distillation
    assert distillation is not None

    def loss_of(architecture: Any) -> Tensor:
        with model.using(architecture):
            outputs = distillation.batch(images, 0, 0)
            return distillation.loss(architecture, lambda: trainer.task(images, labels), outputs)

    largest, smallest = model.space.largest(), model.space.smallest()
    with model.using(largest):
        target_loss = float(F.cross_entropy(model(images), labels))
    assert float(loss_of(largest)) == pytest.approx(target_loss, abs=1e-4)
    before = float(loss_of(smallest))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        loss_of(smallest).backward()
        optimizer.step()
    assert float(loss_of(smallest)) < 0.8 * before


def test_pairs_of_layers(converted: Path) -> None:
    supernet, subnet = load_model(converted / "supernet.pt"), load_model(converted / "subnet.pt")
    order, largest, smallest = supernet.net.config.layer_order, supernet.space.largest(), supernet.space.smallest()
    assert len(order) == 3 and smallest["layers"] == 2
    kept = sorted(order[:2])
    assert layer_pairs(supernet, smallest, supernet, largest) == [(0, kept[0]), (1, kept[1])]
    assert layer_pairs(subnet, subnet.architecture, supernet, largest) == [(0, 1), (1, 2)]
    with torch.no_grad(), capture(supernet, smallest) as activations:
        supernet(batch()[0])
    assert [tuple(one.shape) for one in activations().hidden] == [(16, 17, smallest["embed_dim"])] * 2


def history(npz: Path, output: Path, converted: Path, **changes: Any) -> Any:
    settings = {**NOT_NAMED, "init": str(converted / "supernet.pt"), "valid_random": 0, **changes}
    return train(npz, output, **settings).history


def test_logits_on_disk_are_read_by_the_same_run_alone(
    npz: Path, converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"teacher": str(converted / "trained.pt"), "mixup": 0.3, "reprob": 0.3,
                               "grad_accum_steps": 2, "epochs": 1}  # fmt: skip
    cached = {**options, "teacher_cache": str(tmp_path / "kept")}
    plain = history(npz, tmp_path / "plain", converted, **options)
    first = history(npz, tmp_path / "first", converted, **cached)
    assert first[-1]["loss"] == pytest.approx(plain[-1]["loss"], abs=1e-3)
    calls: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(Teacher, "output", lambda *_: calls.append(1))
        assert history(npz, tmp_path / "second", converted, **cached) == first and not calls
    for changes in ({"seed": 2}, {"mixup": 0.0}, {"teacher_top_k": 1}, {"act_drop": 0.3},
                    {"teacher": str(converted / "subnet.pt")}):  # fmt: skip
        with pytest.raises(DataError, match="has another teacher"):
            history(npz, tmp_path / "other", converted, **{**cached, **changes})
    few = {**cached, "teacher_cache": str(tmp_path / "few"), "teacher_top_k": 1}
    assert history(npz, tmp_path / "top", converted, **few)[-1]["loss"] != first[-1]["loss"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "epoch-0001").write_text("in the way")
    with pytest.raises(NasExtError, match="epoch-0001"):
        history(npz, tmp_path / "other", converted, **{**cached, "teacher_cache": str(tmp_path / "full")})


def test_the_teachers_images_have_its_own_normalisation(converted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pt"
    elastic(vit(pretrained_cfg_overlay={"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}), out=other)
    model = load_model(converted / "supernet.pt")
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1), torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    logits = Teacher(other, model, torch.device("cpu"), "fp32").logits((pixels - 0.2) / 0.5)
    torch.testing.assert_close(logits, load_model(other)((pixels - mean) / std), atol=1e-4, rtol=1e-4)
