"""Students learn from a frozen network, or from the largest subnet: losses, files, the cache, and wrong input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import CheckpointError, ConfigError, DataError, NasExtError
from nas_core.supernet.teacher import naive_distillation_loss
from tests.timm_ext.running import config, train
from tests.timm_ext.trained.tiny import save, vit
from timm_ext import elastic, load_model, write_subnet
from timm_ext.checkpoint import read_checkpoint
from timm_ext.train import Trainer
from timm_ext.trained.layers import layer_pairs, listening
from timm_ext.trained.teacher import Teacher

NOT_NAMED = {"model": "", "search_space": ""}


@pytest.fixture(scope="module")
def files(npz: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model, the supernet made of it, and a subnet of that."""
    folder = tmp_path_factory.mktemp("teacher")
    save(vit(), folder / "trained.pt")
    elastic(folder / "trained.pt", importance_by="activation", calibrate=1, data=npz, out=folder / "supernet.pt")
    supernet = load_model(folder / "supernet.pt")
    write_subnet(supernet, supernet.space.smallest(), folder / "subnet.pt")
    return folder


def student(npz: Path, output: Path, files: Path, **changes: Any) -> Trainer:
    return Trainer(config(npz, output, **NOT_NAMED, **{"init": str(files / "supernet.pt"), "lr": 1e-3, **changes}))


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1] * 8)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("name", ["trained.pt", "supernet.pt"])
def test_the_loss_is_of_labels_and_of_the_teacher(
    name: str, temperature: float, npz: Path, files: Path, tmp_path: Path
) -> None:
    taught = student(npz, tmp_path / "run", files, teacher=str(files / name), distill_weight=0.25,
                     distill_temperature=temperature)  # fmt: skip
    images, labels = batch()
    taught.model.train()
    (loss,) = taught.train_step(images, labels, 0)
    again = student(npz, tmp_path / "run", files).model.eval()
    with again.using(again.draw(0)):
        logits = again(images)
    kl = naive_distillation_loss(logits, load_model(files / "supernet.pt")(images), temperature)
    assert float(loss) == pytest.approx(float(0.75 * F.cross_entropy(logits, labels) + 0.25 * kl), rel=1e-4)


def test_the_largest_subnet_teaches_the_others(npz: Path, files: Path, tmp_path: Path) -> None:
    taught = student(npz, tmp_path / "run", files, teacher="largest", sampling="sandwich", distill_weight=1.0,
                     distill_hidden=1.0, distill_attention=1.0)  # fmt: skip
    images, labels = batch()
    taught.model.train()
    losses = taught.train_step(images, labels, 0)
    space, again = taught.model.space, student(npz, tmp_path / "run", files).model.eval()
    with again.using(space.largest()):
        whole = again(images)
    with again.using(space.smallest()):
        small = again(images)
    assert float(3 * losses[0]) == pytest.approx(float(F.cross_entropy(whole, labels)), rel=1e-4)
    assert float(3 * losses[2]) > float(naive_distillation_loss(small, whole))
    with_labels = student(npz, tmp_path / "run", files, teacher="largest", sampling="sandwich", distill_weight=0.0)
    with_labels.model.train()
    assert float(3 * with_labels.train_step(images, labels, 0)[2]) == pytest.approx(
        float(F.cross_entropy(small, labels)), rel=1e-4
    )


@pytest.mark.parametrize("which", ["distill_hidden", "distill_attention"])
def test_what_layers_compute_is_compared_where_it_belongs(which: str, npz: Path, files: Path, tmp_path: Path) -> None:
    """The largest subnet differs from a teacher of its own weights by nothing; a smaller one learns to differ less."""
    options: dict[str, Any] = {"teacher": str(files / "supernet.pt"), "distill_weight": 0.0, which: 100.0}
    taught = student(npz, tmp_path / "run", files, **options)
    images, labels = batch()
    model, teaching = taught.model.eval(), taught.teaching
    assert teaching is not None

    def loss_of(architecture: Any) -> Tensor:
        with model.using(architecture):
            lesson = teaching.lesson(images, 0, 0)
            return teaching.loss(architecture, lambda: taught.task(images, labels), lesson)

    largest, smallest = model.space.largest(), model.space.smallest()
    with model.using(largest):
        own = float(F.cross_entropy(model(images), labels))
    assert float(loss_of(largest)) == pytest.approx(own, abs=1e-4)
    before = loss_of(smallest)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        loss_of(smallest).backward()
        optimizer.step()
    assert float(loss_of(smallest)) < 0.8 * float(before)


def test_layers_that_belong_together(files: Path) -> None:
    supernet, subnet = load_model(files / "supernet.pt"), load_model(files / "subnet.pt")
    order, largest, smallest = supernet.net.config.layer_order, supernet.space.largest(), supernet.space.smallest()
    assert len(order) == 3 and smallest["layers"] == 2
    kept = sorted(order[:2])
    assert layer_pairs(supernet, smallest, supernet, largest) == [(0, kept[0]), (1, kept[1])]
    assert layer_pairs(subnet, subnet.architecture, supernet, largest) == [(0, 1), (1, 2)]
    with torch.no_grad(), listening(supernet, smallest) as heard:
        supernet(batch()[0])
    assert [tuple(one.shape) for one in heard().hidden] == [(16, 17, smallest["embed_dim"])] * 2


def history(npz: Path, output: Path, files: Path, **changes: Any) -> Any:
    return train(npz, output, **NOT_NAMED, init=str(files / "supernet.pt"), lr=1e-3, **changes).history


def test_logits_on_disk_are_read_by_the_same_run_alone(
    npz: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rough = {"mixup": 0.3, "reprob": 0.3, "grad_accum_steps": 2, "sampling": "sandwich"}
    options: dict[str, Any] = {"teacher": str(files / "trained.pt"), **rough}
    cached = {**options, "teacher_cache": str(tmp_path / "kept")}
    plain = history(npz, tmp_path / "plain", files, **options)
    first = history(npz, tmp_path / "first", files, **cached)
    assert first[-1]["loss"] == pytest.approx(plain[-1]["loss"], abs=1e-3)
    asked: list[int] = []
    monkeypatch.setattr(Teacher, "answer", lambda *_: asked.append(1))
    assert history(npz, tmp_path / "second", files, **cached) == first and not asked
    for changes in ({"seed": 2}, {"batch_size": 8}, {"mixup": 0.0}, {"teacher_top_k": 1}, {"distill_temperature": 2.0},
                    {"teacher": str(files / "subnet.pt")}):  # fmt: skip
        with pytest.raises(DataError, match="is the cache of"):
            history(npz, tmp_path / "other", files, **{**cached, **changes})
    assert not (tmp_path / "other" / "last.pt").exists()
    monkeypatch.undo()
    few = history(
        npz, tmp_path / "few", files, **{**cached, "teacher_cache": str(tmp_path / "few"), "teacher_top_k": 1}
    )
    assert few[-1]["loss"] != first[-1]["loss"]


def test_what_was_kept_of_other_images_is_not_taught(npz: Path, files: Path, tmp_path: Path) -> None:
    """Dropout draws from the stream of the augmentation, so that images differ where nothing of the data does."""
    cached: dict[str, Any] = {"teacher": str(files / "trained.pt"), "teacher_cache": str(tmp_path / "kept"),
                              "reprob": 0.5, "epochs": 1}  # fmt: skip
    history(npz, tmp_path / "one", files, **cached)
    for changes in ({"act_drop": 0.3}, {"drop_path": 0.3}):
        with pytest.raises(DataError, match=r"--teacher-cache .* are of other images .* give a new folder") as caught:
            history(npz, tmp_path / "other", files, **{**cached, **changes})
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "other" / "last.pt").exists()
    history(npz, tmp_path / "again", files, **cached)


def test_an_interrupted_run_with_a_teacher_continues(npz: Path, files: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"teacher": str(files / "supernet.pt"), "distill_hidden": 0.1, "distill_attention": 0.1}
    whole = history(npz, tmp_path / "whole", files, **options)
    parts = student(npz, tmp_path / "parts", files, **options)
    parts.history.append({"epoch": 0, "train_loss": parts.train_epoch(), **parts.validate()})
    parts.epoch = 1
    parts.save(tmp_path / "parts" / "last.pt")
    assert history(npz, tmp_path / "parts", files, **options) == whole
    with pytest.raises(ConfigError, match="holds a run with --teacher"):
        history(npz, tmp_path / "parts", files)


def test_an_extracted_network_takes_the_same_teacher(npz: Path, files: Path, tmp_path: Path) -> None:
    for name, options in (("supernet.pt", {"distill_hidden": 0.5}), ("trained.pt", {})):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        trainer = train(npz, tmp_path / "run", **NOT_NAMED, init=str(files / "subnet.pt"), lr=1e-3,
                        teacher=str(files / name), **options)  # fmt: skip
        assert not trainer.model.is_supernet and len(trainer.history) == 2
        assert read_checkpoint(tmp_path / "run" / "last.pt")["train"]["teacher"] == str(files / name)


def test_the_teacher_is_fed_what_it_was_trained_with(npz: Path, files: Path, tmp_path: Path) -> None:
    """Its images are normalised anew where the student's are normalised otherwise."""
    other = tmp_path / "other.pt"
    elastic(vit(pretrained_cfg_overlay={"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}), out=other)
    model = load_model(files / "supernet.pt")
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1), torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    found = Teacher(other, model, torch.device("cpu"), "fp32").logits((pixels - 0.5) / 0.5)
    torch.testing.assert_close(found, load_model(other)((pixels - mean) / std), atol=1e-4, rtol=1e-4)


def test_wrong_input_is_told_before_work_begins(npz: Path, files: Path, tmp_path: Path) -> None:
    save(vit(num_classes=3), tmp_path / "three.pt", num_classes=3)
    save(vit(img_size=64), tmp_path / "large.pt", img_size=64)
    (tmp_path / "text.pt").write_text("text")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "epoch-0001").write_text("in the way")
    teacher = str(files / "trained.pt")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"teacher": str(tmp_path / "three.pt")}, "3 classes, the student 2"),
        ({"teacher": str(tmp_path / "large.pt")}, "does not read images of"),
        ({"teacher": str(tmp_path / "text.pt")}, "cannot be read"),
        ({"teacher": str(tmp_path / "absent.pt")}, "no file"),
        ({"teacher": "largest"}, "without --sampling sandwich"),
        ({"teacher": "largest", "sampling": "sandwich", "init": str(files / "subnet.pt")}, "is no supernet"),
        ({"teacher": teacher, "distill_hidden": 1.0}, "in another order"),
        ({"teacher": teacher, "distill_weight": 1.5}, "from 0 to 1"),
        ({"teacher": teacher, "distill_temperature": 0.0}, "above 0"),
        ({"teacher": teacher, "distill_attention": -1.0}, "from 0 on"),
        ({"teacher": teacher, "teacher_top_k": 1}, "nothing is kept"),
        ({"teacher": teacher, "teacher_cache": "x", "distill_hidden": 1.0}, "of whose layers nothing is kept"),
        ({"teacher": "largest", "sampling": "sandwich", "teacher_cache": "x"}, "whose weights change"),
        ({"teacher": teacher, "teacher_cache": str(tmp_path / "x"), "teacher_top_k": 3}, "3 words"),
        ({"teacher_cache": "x"}, "--teacher-cache without --teacher"),
        ({"teacher": teacher, "teacher_cache": "x", "persistent_workers": True}, "--persistent-workers"),
        ({"teacher": str(files / "supernet.pt"), "distill_hidden": 1.0, "torchcompile": "eager"}, "leave one out"),
    ]
    for changes, said in cases:
        with pytest.raises((ConfigError, DataError, CheckpointError), match=said) as caught:
            student(npz, tmp_path / "run", files, **changes)
        assert "\n" not in str(caught.value)
    with pytest.raises(NasExtError, match="epoch-0001"):
        student(npz, tmp_path / "run", files, teacher=teacher, teacher_cache=str(tmp_path / "full")).run()
    assert not (tmp_path / "run").exists()
