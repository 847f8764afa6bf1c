"""Images from npz files and folders, and how they are split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from timm_ext.data import JpegFile, open_images, open_splits


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
    with pytest.raises(ConfigError, match="--val-count 72 of 72 images"):
        open_splits(npz, None, 72, 1)
    with pytest.raises(ConfigError, match="--train-count 60, but there are 52"):
        open_splits(npz, None, 20, 1, train_count=60)
