"""The experiments for images: every option is known, and the supernet's training starts with the paper's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nas_core.errors import MissingHostError
from nas_core.space import save_space
from nas_core.space.image import image_space
from tests.examples.papers.conftest import words

try:
    import timm_ext  # noqa: F401
except MissingHostError as error:
    pytest.skip(str(error), allow_module_level=True)

from timm_ext.options import parse
from timm_ext.train import Trainer

pytestmark = pytest.mark.timm
NAME = "mformer_cifar10"


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Options that make it small: the paper's stay."""
    space = image_space(
        "tiny", layers=(1, 2), embed_dims=(16, 24), ffn_dims=(16, 32), heads=(1, 2), head_dim=8, image_size=32,
        patch_size=8, attention=("softmax", "linear"), relative_clip=3,
    )  # fmt: skip
    save_space(space, tmp_path / "space.yml")
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for index in range(12):
            pixels = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{index}.png")
    return ["--search-space", str(tmp_path / "space.yml"), "--img-size", "32", "--batch-size", "8"]


def started(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Trainer, list[float]]:
    """Two updates of a training, and their rates."""
    assert arguments[:3] == ["python", "-m", "timm_ext.train"]
    trainer, rates = Trainer(parse(arguments[3:])), []

    def update(*given: Any) -> float:
        if len(rates) == 2:
            raise KeyboardInterrupt
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        return Trainer.train_step(trainer, *given)

    monkeypatch.setattr(trainer, "train_step", update)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    return trainer, rates


def check_paper(trainer: Trainer, rates: list[float]) -> None:
    step = (1e-3 - 1e-6) / 976
    assert rates == pytest.approx([1e-6, 1e-6 + step])
    assert trainer.updates == 140_000
    (group,) = trainer.optimizer.param_groups
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.998), 0.05)
    trainer.schedule.step_update(976)
    assert group["lr"] == pytest.approx(1e-3)
    trainer.schedule.step_update(140_000 - 1)
    assert group["lr"] == pytest.approx(1e-6, rel=1e-3)


def test_the_supernet_starts(tmp_path: Path, small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"DATA": tmp_path / "images", "OUT": tmp_path / "run", "WORKERS": 0}
    trainer, rates = started([*words(NAME, "supernet", **settings), *small, "--val-count", "4"], monkeypatch)
    check_paper(trainer, rates)
    assert trainer.model.is_supernet
    config = parse(words(NAME, "supernet", **settings)[3:])
    assert (config.batch_size, config.smoothing, config.act_drop, config.drop_path) == (256, 0.1, 0.1, 0.1)
    assert (config.aa, config.color_jitter, config.reprob) == ("rand-m9-mstd0.5-inc1", 0.4, 0.25)


def test_the_network_starts(tmp_path: Path, small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from nas_core.space import get_space

    get_space(small[1]).smallest().save(tmp_path / "A.json")
    settings = {"DATA": tmp_path / "images", "TEST": tmp_path / "images", "OUT": tmp_path / "run", "WORKERS": 0}
    trainer, rates = started([*words(NAME, "retrain", **settings, ARCH=tmp_path / "A.json"), *small], monkeypatch)
    check_paper(trainer, rates)
    assert not trainer.model.is_supernet


def test_the_published_network_has_the_same_settings() -> None:
    first, other = (parse(words(NAME, step)[3:]) for step in ("published", "retrain"))
    differ = {name for name, value in vars(first).items() if value != getattr(other, name)}
    assert differ == {"model", "output", "subnet"}
