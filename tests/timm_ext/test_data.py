"""Images from npz files and folders, how they are split, and the loaders that read them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from tests.timm_ext.running import SPACE, train
from tests.timm_ext.trained_by_workers import plain_images
from timm_ext.data import open_images, open_splits, validation_data
from timm_ext.host import HOST


def test_images_and_labels(npz: Path, folder: Path) -> None:
    train, validation = open_images(folder), open_images(folder, "validation")
    assert [len(source) for source in (open_images(npz), train, validation)] == [72, 20, 8]
    for source in (open_images(npz), train):
        assert source.classes == 2
        for index in (0, len(source) - 1):
            image, label = source.image(index)
            red, _, blue = np.asarray(image).mean((0, 1))
            assert image.size == (32, 32)
            assert source.names[label] == ("blue" if blue > red else "red")


def test_held_out_images_are_drawn_by_the_seed(npz: Path) -> None:
    for count, sizes in ((20, (52, 20)), (0, (62, 10))):  # by default a tenth of each class
        train, valid = open_splits(npz, None, count, seed=1)
        assert (len(train), len(valid)) == sizes
        assert sorted([*train.indices, *valid.indices]) == list(range(72))
        assert {valid[index][1] for index in range(len(valid))} == {0, 1}  # classes are grouped in the file
        reloaded, other = open_splits(npz, None, count, seed=1)[1], open_splits(npz, None, count, seed=2)[1]
        assert list(reloaded.indices) == list(valid.indices) != list(other.indices)
    few = open_splits(npz, None, 20, seed=1, train_count=10)[0]
    assert len(few) == 10 and set(few.indices) <= set(open_splits(npz, None, 20, seed=1)[0].indices)


def test_a_folders_own_splits_are_taken(folder: Path, tmp_path: Path) -> None:
    for arguments in ((None, 0), (folder, 0)):
        assert [len(part) for part in open_splits(folder, *arguments, seed=1)] == [20, 8]
    assert [len(part) for part in open_splits(folder, None, 4, seed=1)] == [16, 4]  # --val-count asks for it
    renamed = tmp_path / "renamed"
    shutil.copytree(folder / "train", renamed / "training")
    shutil.copytree(folder / "validation", renamed / "val")
    train, valid = open_splits(renamed, None, 0, seed=1)
    assert (len(train), len(valid), train.source.classes) == (20, 8, 2)
    assert validation_data(renamed, None, 0) == renamed / "val"
    (renamed / "val").rename(renamed / "test")
    assert [len(part) for part in open_splits(renamed, None, 0, seed=1)] == [16, 4]  # a test set is for the end
    assert validation_data(renamed, None, 0) is None
    with pytest.raises(DataError, match="has the folders test, training, but none named validation, val"):
        open_images(renamed, "validation")


def test_a_training_on_a_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = train(folder, tmp_path / "run", val_count=0, batch_size=8, updates=2)
    assert f"20 training images, 8 validation images from {folder / 'validation'}" in capsys.readouterr().err
    metrics = HOST.open(tmp_path / "run" / "last.pt").evaluate(SPACE.smallest())
    assert metrics["loss"] == pytest.approx(trainer.history[-1]["subnets"]["smallest"]["loss"], rel=1e-4)


def test_processes_that_read_images(npz: Path, tmp_path: Path) -> None:
    with plain_images():
        alone = train(npz, tmp_path / "alone")
        kept = train(npz, tmp_path / "kept", workers=1)
    assert kept.history[0] == alone.history[0] and len(kept.history) == 2
