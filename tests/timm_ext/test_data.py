"""Images from npz files and folders, and how they are split."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from timm_ext.data import JpegFile, open_images, open_splits, some_of_each_class, where_validated


def test_npz_images(npz: Path) -> None:
    source = open_images(npz)
    assert (len(source), source.classes) == (72, 2)
    for index in (0, 71):
        image, label = source.image(index)
        red, _, blue = np.asarray(image).mean((0, 1))
        assert image.size == (32, 32)
        assert label == (blue > red)


def test_folders(folder: Path) -> None:
    train, validation = open_images(folder), open_images(folder, "validation")
    assert (len(train), len(validation), train.classes) == (20, 8, 2)
    image, label = train.image(0)
    assert image.size == (32, 32)
    assert label in (0, 1)
    train_set, valid_set = open_splits(folder, folder, 0, 1)
    assert (len(train_set), len(valid_set)) == (20, 8)


def test_held_out_images_are_drawn_by_the_seed(npz: Path) -> None:
    train, valid = open_splits(npz, None, 20, seed=1)
    assert (len(train), len(valid)) == (52, 20)
    assert sorted([*train.indices, *valid.indices]) == list(range(72))
    assert {valid[index][1] for index in range(20)} == {0, 1}  # classes are grouped in the file
    again, other = open_splits(npz, None, 20, seed=1)[1], open_splits(npz, None, 20, seed=2)[1]
    assert list(again.indices) == list(valid.indices) != list(other.indices)
    few = open_splits(npz, None, 20, seed=1, train_count=10)[0]
    assert len(few) == 10
    assert set(few.indices) <= set(train.indices)


def test_a_folders_own_splits_are_taken(folder: Path, tmp_path: Path) -> None:
    train, valid = open_splits(folder, None, 0, seed=1)
    assert (len(train), len(valid)) == (20, 8)
    held_out = open_splits(folder, None, 4, seed=1)
    assert [len(part) for part in held_out] == [16, 4]  # --val-count asks for it
    for name in ("val", "valid", "eval"):
        renamed = tmp_path / name
        shutil.copytree(folder / "train", renamed / "training")
        shutil.copytree(folder / "validation", renamed / name)
        train, valid = open_splits(renamed, None, 0, seed=1)
        assert (len(train), len(valid), train.source.classes) == (20, 8, 2)
        assert where_validated(renamed, None, 0) == f"those of {renamed / name}"
    (tmp_path / "val" / "val").rename(tmp_path / "val" / "test")
    train, valid = open_splits(tmp_path / "val", None, 0, seed=1)
    assert (len(train), len(valid)) == (16, 4)  # a test set is for the end
    assert where_validated(tmp_path / "val", None, 0).endswith(f"({tmp_path / 'val' / 'test'} is left alone)")
    with pytest.raises(DataError, match="holds test, training and no folder of validation, val"):
        open_images(tmp_path / "val", "validation")


def test_what_is_held_out_by_default_has_every_class(npz: Path, tmp_path: Path) -> None:
    train, valid = open_splits(npz, None, 0, seed=1)
    assert (len(train), len(valid)) == (62, 10)
    assert sorted([*train.indices, *valid.indices]) == list(range(72))
    assert [int((valid.source.labels[valid.indices] == label).sum()) for label in (0, 1)] == [5, 5]
    again, other = open_splits(npz, None, 0, seed=1)[1], open_splits(npz, None, 0, seed=2)[1]
    assert list(again.indices) == list(valid.indices) != list(other.indices)
    big = source_of([30_000, 40_000, 8, 1])
    held = np.bincount(big.labels[some_of_each_class(big, np.arange(len(big.labels)))])
    assert held.tolist() == [2142, 2856, 1]
    with pytest.raises(ConfigError, match=r"4 images of 2 classes .* too few to hold some out"):
        open_splits(few_images(npz, tmp_path), None, 0, seed=1)


def source_of(counts: list[int]) -> Any:
    return SimpleNamespace(classes=len(counts), labels=np.repeat(np.arange(len(counts)), counts))


def few_images(npz: Path, tmp_path: Path) -> Path:
    with np.load(npz) as table:
        arrays = dict(table)
    chosen = np.array([0, 1, 70, 71])
    files = [arrays["data"][arrays["offset"][index] : arrays["offset"][index + 1]] for index in chosen]
    offset = np.concatenate([[0], np.cumsum([len(file) for file in files])])
    given = {"data": np.concatenate(files), "offset": offset, "label": arrays["label"][chosen]}
    np.savez(tmp_path / "few.npz", **given, classes=arrays["classes"])
    return tmp_path / "few.npz"


def test_classes_of_both_sets_are_compared(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "validation", tmp_path / "other")
    (tmp_path / "other" / "red").rename(tmp_path / "other" / "rose")
    with pytest.raises(ConfigError, match=r"a class of .* is 'red' where .* has 'rose'"):
        open_splits(folder, tmp_path / "other", 0, 1)


def test_wrong_input_is_explained(npz: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file .*nothing\.npz; give an npz of images, or a folder"):
        open_images(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("text")
    with pytest.raises(DataError, match="no npz with data, offset, label and classes"):
        open_images(tmp_path / "text.npz")
    with pytest.raises(DataError, match="no images in one sub-folder per class"):
        open_images(tmp_path)
    with np.load(npz) as table:
        arrays = dict(table)
    np.savez(tmp_path / "cut.npz", **{**arrays, "offset": arrays["offset"][:-1]})
    with pytest.raises(DataError, match="72 labels and 72 offsets"):
        JpegFile(tmp_path / "cut.npz")
    np.savez(tmp_path / "noise.npz", **{**arrays, "data": np.zeros_like(arrays["data"])})
    with pytest.raises(DataError, match=r"image 3 of .* cannot be read"):
        JpegFile(tmp_path / "noise.npz").image(3)
    one_class = tmp_path / "one"
    shutil.copytree(next((folder / "train").iterdir()), one_class / "only")
    with pytest.raises(DataError, match="has images of 1 class; expected a sub-folder for each of two or more"):
        open_splits(one_class, None, 0, 1)
    with pytest.raises(ConfigError, match="--val-count 72 of 72 images"):
        open_splits(npz, None, 72, 1)
    with pytest.raises(ConfigError, match="--train-count 60, but there are 52"):
        open_splits(npz, None, 20, 1, train_count=60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.full(72, 7)}, "labels outside its 2 classes"),
        ({"label": np.full(72, -1)}, "labels outside its 2 classes"),
        ({"label": np.zeros((72, 1))}, "arrays of arrays"),
        ({"label": np.array(["red"] * 72)}, "no npz with"),
        ({"offset": "falls"}, "offsets that fall"),
        ({"offset": np.array(3)}, "arrays of arrays"),
        ({"data": np.zeros(9, np.float32)}, "data of float32"),
    ],
)
def test_arrays_of_others_are_checked(change: dict[str, Any], message: str, npz: Path, tmp_path: Path) -> None:
    with np.load(npz) as table:
        arrays = dict(table)
    if change.get("offset") is not None and isinstance(change["offset"], str):
        change = {"offset": np.concatenate([[10**6], arrays["offset"][1:]])}
    np.savez(tmp_path / "odd.npz", **{**arrays, **change})
    with pytest.raises(DataError, match=message):
        JpegFile(tmp_path / "odd.npz")
