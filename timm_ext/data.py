"""Labelled images: folders with one subfolder per class (or with train/ and val/), or npz files.

An npz file of n images contains ``data`` (JPEG files, uint8), ``offset`` (n + 1,), ``label`` (n,) and ``classes``
(names).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from timm.data import create_dataset
from torch.utils.data import Dataset

from nas_core.errors import ConfigError, DataError
from nas_core.files.archives import DAMAGED_ARCHIVE, open_npz
from nas_core.files.reading import real_path

_SPLITS = {"train": ("train", "training"), "validation": ("validation", "val", "valid", "eval", "evaluation")}
"""Split -> accepted folder names, in timm's order of preference."""
_SPLIT_NAMES = {*_SPLITS["train"], *_SPLITS["validation"], "test", "testing"}
_HELD_OUT_SHARE, _MAX_HELD_OUT, _MIN_HELD_OUT = 0.1, 5000, 5
"""Images held out by default: a tenth of each class, at most 5000 in total, at least 5 of classes with 25 images."""


class JpegFile:
    """Images of an npz file."""

    def __init__(self, path: Path) -> None:
        if not Path(path).exists():
            raise DataError(
                f"{path} does not exist; give an npz file of images, or a folder with one subfolder per class"
            )
        try:
            with open_npz(path) as table:
                self.data, self.offset = table["data"], table["offset"].astype(np.int64)
                self.labels, self.names = table["label"].astype(np.int64), [str(name) for name in table["classes"]]
        except DAMAGED_ARCHIVE as error:
            raise DataError(
                f"{path} cannot be read as an npz file of images ({error}); expected arrays data, offset, label and"
                " classes"
            ) from None
        self.path, self.classes = path, len(self.names)
        offsets_match = len(self.offset) == len(self.labels) + 1 and self.offset[-1] == len(self.data)
        if not offsets_match or not np.isin(self.labels, range(self.classes)).all():
            raise DataError(
                f"{path} has {len(self.labels)} labels, {self.classes} classes, {len(self.offset)} offsets and"
                f" {len(self.data)} bytes; expected labels from 0 to {self.classes - 1}, {len(self.labels) + 1}"
                f" offsets, and a last offset of {len(self.data)}; create the file again"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> tuple[Image.Image, int]:
        content = self.data[self.offset[index] : self.offset[index + 1]].tobytes()
        try:
            return Image.open(io.BytesIO(content)).convert("RGB"), int(self.labels[index])
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"image {index} of {self.path} cannot be decoded ({error}); remove or replace it") from None


class ImageFolder:
    """Images of a folder, read by timm."""

    def __init__(self, path: Path, split: str) -> None:
        folders = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
        folder = _split_folder(path, split)
        if folder is None and folders and set(folders) <= _SPLIT_NAMES:  # timm would read the images of all of them
            names = ", ".join(_SPLITS.get(split, (split,)))
            raise DataError(
                f"{path} has the folders {', '.join(folders)}, but none named {names}; rename one, or give the path of"
                " one of these folders"
            )
        path = folder or path
        try:
            self.dataset: Any = create_dataset("", root=str(path), split=split, search_split=False)
        except (RuntimeError, FileNotFoundError, AssertionError) as error:
            raise DataError(f"{path} has no images ({error}); expected one subfolder of images per class") from None
        indices = self.dataset.reader.class_to_idx
        self.names, self.classes = sorted(indices, key=indices.__getitem__), len(indices)
        self.labels = np.array([label for _, label in self.dataset.reader.samples], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.dataset)

    def image(self, index: int) -> tuple[Image.Image, int]:
        image, label = self.dataset[index]
        return image, int(label)


Source = JpegFile | ImageFolder
"""Stored images, with attributes ``labels``, ``classes`` (their number) and ``names`` (of classes, by label)."""


class ImageSet(Dataset[tuple[Any, int]]):
    """Data set of some images of a source, by index; timm's loader sets ``transform``."""

    def __init__(self, source: Source, indices: Sequence[int] | NDArray[np.int64] | None = None) -> None:
        self.source = source
        self.indices = np.arange(len(source)) if indices is None else np.asarray(indices)
        self.transform: Any = None

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image, label = self.source.image(int(self.indices[index]))
        return (image if self.transform is None else self.transform(image)), label


def _split_folder(path: Path, split: str) -> Path | None:
    return next((path / name for name in _SPLITS.get(split, (split,)) if (path / name).is_dir()), None)


def open_images(path: str | Path, split: str = "train") -> Source:
    """Open an npz file, or a folder of images (its subfolder for ``split``, if it has one)."""
    path = Path(path)
    return ImageFolder(path, split) if path.is_dir() else JpegFile(path)


def has_training_images(path: Path) -> bool:
    return path.is_dir() and _split_folder(path, "train") is not None


def is_training_data(data: Path, trained_on: Path, held_out: int) -> bool:
    """Return True if ``data`` contains the training images of a run, and False if it has validation images only.

    Args:
        trained_on: path of the training images when the run started.
        held_out: number of training images held out for validation.
    """
    return bool(held_out) or real_path(data).name == real_path(trained_on).name or has_training_images(data)


def open_subset(folders: Sequence[Path], name: str) -> Source:
    """Open a split in the first of several folders that has it.

    Args:
        name: ``train``, ``val``, ``test``, or the name of another subfolder.
    """
    split = next((split for split, names in _SPLITS.items() if name in names), name)
    for root in folders:
        if root.is_dir() and (folder := _split_folder(root, split)):
            return ImageFolder(folder, split)
    paths = " or ".join(map(str, folders)) or "no --data"
    raise DataError(
        f"--valid-subset {name} was not found in {paths}; give a folder with train/, val/ or test/ as --data, or leave"
        " --valid-subset out"
    )


def validation_data(train: str | Path, validation: str | Path | None, held_out: int) -> str | Path | None:
    """Return the path that :func:`open_splits` validates on; None if it holds out training images."""
    if validation or held_out:
        return validation or None
    return _split_folder(Path(train), "validation") if has_training_images(Path(train)) else None


def open_splits(
    train: str | Path, validation: str | Path | None, held_out: int, seed: int, train_count: int = 0
) -> tuple[ImageSet, ImageSet]:
    """Return training images and validation images.

    Args:
        validation: validation images; default: ``held_out`` training images, the subfolder ``val``, or a tenth of each
            class: the first that exists.
        held_out: number of training images held out for validation; 0: not set.
        train_count: number of training images; 0: all.
    """
    source = open_images(train)
    if source.classes < 2:
        raise DataError(
            f"{train} has images of {source.classes} class; expected one subfolder for each of two or more classes:"
            " give the parent folder"
        )
    order = np.random.default_rng(seed).permutation(len(source))
    if validation := validation_data(train, validation, held_out):
        valid_set, train_indices = ImageSet(open_images(validation, "validation")), order
        _check_classes(train, source, validation, valid_set.source)
    else:
        valid_indices = order[:held_out] if held_out else held_out_per_class(source, order)
        valid_set, train_indices = ImageSet(source, np.sort(valid_indices)), order[~np.isin(order, valid_indices)]
        if not len(valid_indices) or not len(train_indices):
            raise ConfigError(
                f"{train} has {len(order)} images, of which --val-count {held_out or 'a tenth'} leaves none for"
                " training or none for validation; give --val-data, or another --val-count"
            )
    if train_count > len(train_indices):
        raise ConfigError(
            f"--train-count {train_count} is more than the {len(train_indices)} training images; give at most"
            f" {len(train_indices)}"
        )
    return ImageSet(source, np.sort(train_indices[: train_count or None])), valid_set


def held_out_per_class(source: Source, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the images held out by default, the first of each class in ``order`` (indices)."""
    share, labels = min(_HELD_OUT_SHARE, _MAX_HELD_OUT / len(order)), source.labels[order]
    held_out = []
    for label in range(source.classes):
        members = order[labels == label]
        held_out.append(members[: max(int(share * len(members)), min(_MIN_HELD_OUT, len(members) // _MIN_HELD_OUT))])
    return np.concatenate(held_out)


def _check_classes(train: str | Path, source: Source, validation: str | Path, val_source: Source) -> None:
    if list(source.names) != list(val_source.names):
        train_only, validation_only = (
            set(a.names) - set(b.names) for a, b in ((source, val_source), (val_source, source))
        )
        raise ConfigError(
            f"{train} has {source.classes} classes and {validation} has {val_source.classes}; expected the same classes"
            f" in the same order, but {sorted(train_only)[:3]} are only in the first and {sorted(validation_only)[:3]}"
            " only in the second"
        )
