"""Settings of standalone trainings of image networks: how long, on which images, and on how many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import CheckpointError, ConfigError
from nas_core.layers import MoSConfig
from tests.timm_ext.running import SPACE, config
from timm_ext.options import TrainConfig, parse
from timm_ext.studied.standalone import Origin, settings, supernet_settings

Settings = Callable[..., TrainConfig]


@pytest.fixture
def standalone(tmp_path: Path) -> Settings:
    """``standalone(trained, data=.., changes=.., workers=..)``: settings of a network of a supernet trained so."""

    def made(
        trained: TrainConfig, data: Path | None = None, changes: dict[str, str] | None = None, workers: int = 1
    ) -> TrainConfig:
        state: dict[str, Any] = {"train": asdict(trained), "worker_count": workers}
        where = None if data is None else str(data)
        own = tmp_path / "own"
        own.mkdir(exist_ok=True)
        return parse(settings(Origin(state, tmp_path / "last.pt", where, SPACE), SPACE.smallest(), own, changes or {}))

    return made


def test_epochs_take_the_place_of_the_supernets_updates(npz: Path, tmp_path: Path, standalone: Settings) -> None:
    trained = config(npz, tmp_path / "run", updates=500, warmup_updates=50)
    found = standalone(trained, changes={"epochs": "20"})
    assert (found.epochs, found.updates, found.warmup_updates) == (20, 0, 0)
    found = standalone(trained, changes={"updates": "60"})
    assert (found.updates, found.warmup_updates) == (60, 50)
    found = standalone(trained, changes={"warmup_epochs": "1"})
    assert (found.updates, found.warmup_updates, found.warmup_epochs) == (500, 0, 1)
    assert standalone(trained).updates == 500


def test_images_to_evaluate_are_not_trained_on(folder: Path, tmp_path: Path, standalone: Settings) -> None:
    train, validation = folder / "train", folder / "validation"
    trained = config(train, tmp_path / "run", val_data=str(validation))
    other = tmp_path / "evaluated"
    for data, expected in ((None, validation), (other, other)):
        found = standalone(trained, data)
        assert (found.data, found.val_data) == (str(train.resolve()), str(expected.resolve()))
    gone = config(tmp_path / "gone" / "train", tmp_path / "run", val_data=str(tmp_path / "gone" / "val"))
    found = standalone(gone, folder)  # all of it has been moved: train/ is trained on, validation/ evaluated
    assert found.data == found.val_data == str(folder.resolve())


def test_data_without_images_to_train_on_is_refused(
    npz: Path, folder: Path, tmp_path: Path, standalone: Settings
) -> None:
    trained = config(npz, tmp_path / "run", val_count=0)
    with pytest.raises(ConfigError, match="no images to train standalone networks on"):
        standalone(trained, folder / "validation")
    for data in (folder, tmp_path / npz.name):  # a training split, and the same file elsewhere
        found = standalone(trained, data)
        assert (found.data, found.val_data) == (str(data.resolve()), "")
    with pytest.raises(ConfigError, match="setting val_data of this training is set by the study"):
        standalone(trained, changes={"val_data": str(folder)})


def test_another_seed_would_train_on_images_that_are_held_out(
    npz: Path, folder: Path, tmp_path: Path, standalone: Settings
) -> None:
    for trained in (config(npz, tmp_path / "run"), config(folder, tmp_path / "run", val_count=4)):
        with pytest.raises(ConfigError, match=r"setting seed .* holds out for validation"):
            standalone(trained, changes={"seed": "2"})
    with_its_own = config(folder, tmp_path / "run", val_count=0)
    with_another = config(npz, tmp_path / "run", val_data=str(folder))
    assert [standalone(each, changes={"seed": "2"}).seed for each in (with_its_own, with_another)] == [2, 2]


def test_other_experts_begin_and_are_kept_apart_as_the_supernets(npz: Path, tmp_path: Path) -> None:
    trained = config(npz, tmp_path / "run", mos="layer", mos_apart=0.5, mos_start="near", mos_rank=2)
    origin = Origin({"train": asdict(trained), "worker_count": 1}, tmp_path / "last.pt", None, SPACE)
    for count, rank, apart in ((3, 2, 0.5), (1, 0, 0.0)):
        experts = MoSConfig(kind="layer", experts=count, start="near", rank=rank)
        found = parse(supernet_settings(origin, experts, tmp_path, {}))
        assert (found.mos_experts, found.mos_start, found.mos_rank, found.mos_apart) == (count, "near", rank, apart)


def test_one_process_averages_over_the_batches_of_all_workers(npz: Path, tmp_path: Path, standalone: Settings) -> None:
    trained = config(npz, tmp_path / "run", grad_accum_steps=2)
    found = standalone(trained, workers=4)
    assert (found.batch_size, found.grad_accum_steps) == (trained.batch_size, 8)
    assert standalone(trained, changes={"grad_accum_steps": "3"}, workers=4).grad_accum_steps == 3
    assert standalone(trained).grad_accum_steps == 2


def test_a_checkpoint_of_another_program_is_rejected(npz: Path, tmp_path: Path) -> None:
    trained = asdict(config(npz, tmp_path / "run"))
    for state in ({}, {"train": trained}, {"train": {"model": trained["model"]}, "worker_count": 1}):
        with pytest.raises(CheckpointError, match="does not say how it was trained"):
            settings(Origin(state, tmp_path / "last.pt", None, SPACE), SPACE.smallest(), tmp_path, {})
