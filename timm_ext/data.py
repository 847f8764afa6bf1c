"""Labelled images: folders with one sub-folder per class (or with train/ and val/), or npz files.

An npz file contains ``data`` (JPEG files, uint8), ``offset`` (n + 1), ``label`` (n) and ``classes`` (names).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from timm.data import create_dataset
from torch.utils.data import Dataset

from nas_core.errors import ConfigError, DataError
from nas_core.files.archives import DAMAGED_ARCHIVE, open_npz
from nas_core.files.reading import real_path

_SPLITS = {"train": ("train", "training"), "validation": ("validation", "val", "valid", "eval", "evaluation")}
"""Folder names of a split, in timm's order of preference."""
_KNOWN = {*_SPLITS["train"], *_SPLITS["validation"], "test", "testing"}
_SHARE, _MOST, _FEW = 0.1, 5000, 5
"""Default held-out images: a tenth of each class, at most 5000 in total; at least 5 of a class with 25 images or
more."""


class Source(Protocol):
    """Stored images and their labels."""

    classes: int
    names: Sequence[str]
    """Class names in label order."""
    labels: NDArray[np.int64]

    def __len__(self) -> int: ...

    def image(self, index: int) -> tuple[Image.Image, int]: ...


class JpegFile:
    """Images of an npz file."""

    def __init__(self, path: Path) -> None:
        if not Path(path).exists():
            raise DataError(f"no file {path}; give an npz of images, or a folder with one sub-folder per class")
        try:
            with open_npz(path) as table:
                self.data, self.offset = table["data"], table["offset"].astype(np.int64)
                self.labels, self.names = table["label"].astype(np.int64), [str(name) for name in table["classes"]]
        except DAMAGED_ARCHIVE as error:
            raise DataError(f"{path} is no npz with data, offset, label and classes ({error})") from None
        self.path, self.classes = path, len(self.names)
        one_each = {self.data.ndim, self.offset.ndim, self.labels.ndim} == {1}
        if not one_each or self.data.dtype != np.uint8 or len(self.offset) != len(self.labels) + 1:
            raise DataError(
                f"{path} has data of {self.data.dtype}, offsets {self.offset.shape} and labels {self.labels.shape};"
                " expected bytes, and one offset more than labels"
            )
        if (np.diff(self.offset, prepend=0) < 0).any() or int(self.offset[-1]) != len(self.data):
            raise DataError(f"{path} has offsets that fall, or end before or after its {len(self.data)} bytes")
        if not all(0 <= label < self.classes for label in self.labels):
            raise DataError(f"{path} has labels outside its {self.classes} classes; expected numbers from 0")

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> tuple[Image.Image, int]:
        content = self.data[self.offset[index] : self.offset[index + 1]].tobytes()
        try:
            return Image.open(io.BytesIO(content)).convert("RGB"), int(self.labels[index])
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"image {index} of {self.path} cannot be read ({error})") from None


class _Folder:
    """Images of a folder, read by timm."""

    def __init__(self, path: Path, split: str) -> None:
        path = _split_folder(path, split)
        try:
            self.dataset: Any = create_dataset("", root=str(path), split=split, search_split=False)
        except (RuntimeError, FileNotFoundError, AssertionError) as error:
            raise DataError(f"{path} holds no images in one sub-folder per class ({error})") from None
        indices = self.dataset.reader.class_to_idx
        self.names, self.classes = sorted(indices, key=indices.__getitem__), len(indices)
        self.labels = np.array([label for _, label in self.dataset.reader.samples], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.dataset)

    def image(self, index: int) -> tuple[Image.Image, int]:
        image, label = self.dataset[index]
        return image, int(label)


class ImageSet(Dataset[tuple[Any, int]]):
    """A subset of a source; timm's loader sets ``transform``."""

    def __init__(self, source: Source, indices: Sequence[int] | NDArray[np.int64] | None = None) -> None:
        self.source = source
        self.indices = np.arange(len(source)) if indices is None else np.asarray(indices)
        self.transform: Any = None

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image, label = self.source.image(int(self.indices[index]))
        return (image if self.transform is None else self.transform(image)), label


def _own_folder(path: Path, split: str) -> Path | None:
    return next((path / name for name in _SPLITS.get(split, (split,)) if (path / name).is_dir()), None)


def _split_folder(path: Path, split: str) -> Path:
    folder = _own_folder(path, split)
    folders = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    if folder is None and folders and set(folders) <= _KNOWN:
        names = ", ".join(_SPLITS.get(split, (split,)))
        raise DataError(f"{path} holds {', '.join(folders)} and no folder of {names}; name one so, or give it itself")
    return folder or path


def open_images(path: str | Path, split: str = "train") -> Source:
    """Open an npz file, a folder, or its sub-folder of the split."""
    path = Path(path)
    return _Folder(path, split) if path.is_dir() else JpegFile(path)


def has_training_images(path: Path) -> bool:
    return path.is_dir() and _own_folder(path, "train") is not None


def is_training_data(data: Path, trained_on: Path, held_out: int) -> bool:
    """Return whether ``data``, possibly moved, is the training data of a run without validation data.

    Args:
        trained_on: original path of the training data.
        held_out: number of held-out images.
    """
    return bool(held_out) or real_path(data).name == real_path(trained_on).name or has_training_images(data)


def open_subset(places: Sequence[Path], name: str) -> Source:
    """Open a split (``train``, ``val``, ``test``, or another folder) in the first place that has it."""
    split = next((split for split, names in _SPLITS.items() if name in names), name)
    for place in places:
        if place.is_dir() and (own := _own_folder(place, split)):
            return _Folder(own, split)
    where = " or ".join(map(str, places)) or "no --data"
    raise DataError(
        f"no images of --valid-subset {name} in {where}; expected a folder with train/, val/ or test/ in it, or leave"
        " --valid-subset away and give the images themselves as --data"
    )


def validation_data(train: str | Path, validation: str | Path | None, held_out: int) -> str | Path | None:
    """Return the validation data of :func:`open_splits`; None if held out of the training images."""
    if validation or held_out:
        return validation or None
    return _own_folder(Path(train), "validation") if has_training_images(Path(train)) else None


def open_splits(
    train: str | Path, validation: str | Path | None, held_out: int, seed: int, train_count: int = 0
) -> tuple[ImageSet, ImageSet]:
    """Return training and validation images.

    Validation uses ``validation``, else ``held_out`` random training images, else the folder's ``val``, else a tenth of
    each class. ``train_count`` limits the training images.

    Raises:
        DataError: there are no images.
        ConfigError: there are too few images, or classes differ.
    """
    source = open_images(train)
    if source.classes < 2:
        raise DataError(
            f"{train} has images of {source.classes} class; expected a sub-folder for each of two or more classes: give"
            " the folder above, or the one with train/ and val/"
        )
    order = np.random.default_rng(seed).permutation(len(source))
    if own := validation_data(train, validation, held_out):
        other = open_images(own, "validation")
        _check_classes(train, source, own, other)
        held, rest = ImageSet(other), order
    else:
        if held_out >= len(order):
            raise ConfigError(
                f"--val-count {held_out} of {len(order)} images; expected fewer, or give --val-data a set of its own"
            )
        chosen = some_of_each_class(source, order) if not held_out else order[:held_out]
        if not len(chosen):
            raise ConfigError(
                f"{len(order)} images of {source.classes} classes in {train} are too few to hold some out; give"
                " --val-data, or --val-count"
            )
        held, rest = ImageSet(source, np.sort(chosen)), order[~np.isin(order, chosen)]
    if train_count > len(rest):
        raise ConfigError(f"--train-count {train_count}, but there are {len(rest)} images to train on")
    return ImageSet(source, np.sort(rest[: train_count or None])), held


def some_of_each_class(source: Source, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the default held-out images: the first of each class in this order."""
    share, labels = min(_SHARE, _MOST / len(order)), source.labels[order]
    taken = []
    for label in range(source.classes):
        members = order[labels == label]
        taken.append(members[: max(int(share * len(members)), min(_FEW, len(members) // _FEW))])
    return np.concatenate(taken)


def _check_classes(train: str | Path, source: Source, validation: str | Path, other: Source) -> None:
    if source.classes != other.classes:
        raise ConfigError(
            f"{train} has {source.classes} classes and {validation} {other.classes}; expected the same ones"
        )
    for name, other_name in zip(source.names, other.names, strict=True):
        if name != other_name:
            raise ConfigError(
                f"a class of {train} is {name!r} where {validation} has {other_name!r}; expected the same classes in"
                " the same order"
            )
