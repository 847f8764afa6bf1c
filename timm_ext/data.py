"""Labelled images: folders with one sub-folder per class (or with train/ and val/, which have those), or npz files of
JPEG bytes.

Such an npz holds ``data`` (all files one behind the other, uint8), ``offset`` (n + 1, where each begins), ``label`` (n)
and ``classes`` (names).
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
from nas_core.files import DAMAGED_ARCHIVE, open_npz, real_path

_SPLITS = {"train": ("train", "training"), "validation": ("validation", "val", "valid", "eval", "evaluation")}
"""Names of a split's folder, first choice first; the names that timm looks for."""
_KNOWN = {*_SPLITS["train"], *_SPLITS["validation"], "test", "testing"}
_SHARE, _MOST, _FEW = 0.1, 5000, 5
"""Held out where nothing else is said: this share of each class, so many images at most; of a small class this many, if
it has five times as many."""


class Source(Protocol):
    """Images as they are stored."""

    classes: int
    names: Sequence[str]
    """Names of the classes, in the order of their labels."""
    labels: NDArray[np.int64]
    """Labels of the images."""

    def __len__(self) -> int: ...

    def image(self, index: int) -> tuple[Image.Image, int]: ...


class JpegFile:
    """Images of an npz file.

    Raises:
        DataError: the file is missing, no npz, or lacks one of its arrays.
    """

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
        if self.data.dtype != np.uint8 or {self.data.ndim, self.offset.ndim, self.labels.ndim} != {1}:
            raise DataError(
                f"{path} has data of {self.data.dtype}, or arrays of arrays; expected bytes, offsets and labels"
            )
        if len(self.offset) != len(self.labels) + 1 or int(self.offset[-1]) != len(self.data):
            raise DataError(f"{path} has {len(self.labels)} labels and {len(self.offset)} offsets; expected one more")
        if (np.diff(self.offset, prepend=0) < 0).any():
            raise DataError(f"{path} has offsets that fall; expected where each image begins and the last ends")
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
    """Images of a folder, by timm's reader."""

    def __init__(self, path: Path, split: str) -> None:
        path = _split_folder(path, split)
        try:
            self.dataset: Any = create_dataset("", root=str(path), split=split, search_split=False)
        except (RuntimeError, FileNotFoundError, AssertionError) as error:
            raise DataError(f"{path} holds no images in one sub-folder per class ({error})") from None
        known = self.dataset.reader.class_to_idx
        self.names, self.classes = sorted(known, key=known.__getitem__), len(known)
        self.labels = np.array([label for _, label in self.dataset.reader.samples], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.dataset)

    def image(self, index: int) -> tuple[Image.Image, int]:
        image, label = self.dataset[index]
        return image, int(label)


class ImageSet(Dataset[tuple[Any, int]]):
    """Some images of a source; timm's loader sets ``transform``."""

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
    """The folder with a sub-folder per class: that of the split where there is one, else ``path`` itself."""
    own = _own_folder(path, split)
    if own is not None:
        return own
    folders = sorted(one.name for one in path.iterdir() if one.is_dir())
    if folders and set(folders) <= _KNOWN:
        wanted = ", ".join(_SPLITS.get(split, (split,)))
        raise DataError(f"{path} holds {', '.join(folders)} and no folder of {wanted}; name one so, or give it itself")
    return path


def open_images(path: str | Path, split: str = "train") -> Source:
    """An npz file, or a folder (``split`` picks its sub-folder where there is one; that of ``validation`` may also be
    called ``val``).

    Raises:
        DataError: nothing there, or nothing that is known.
    """
    path = Path(path)
    return _Folder(path, split) if path.is_dir() else JpegFile(path)


def has_training_images(path: Path) -> bool:
    """Whether it is a folder with a training split of its own."""
    return path.is_dir() and _own_folder(path, "train") is not None


def is_training_data(data: Path, trained_on: Path, held_out: int) -> bool:
    """Whether ``data`` is what a run without validation data of its own was trained on, perhaps moved, rather than
    images to evaluate only.

    Args:
        trained_on: where the run read it.
        held_out: how many images the run was told to hold out of it.
    """
    return bool(held_out) or real_path(data).name == real_path(trained_on).name or has_training_images(data)


def open_subset(places: Sequence[Path], name: str) -> Source:
    """The images of a split (``train``, ``val``, ``test``, or another folder) in the first place that has it.

    Raises:
        DataError: none of the places has a folder of that name.
    """
    split = next((split for split, names in _SPLITS.items() if name in names), name)
    for place in places:
        if place.is_dir() and (own := _own_folder(place, split)):
            return _Folder(own, split)
    where = " or ".join(map(str, places)) or "no --data"
    raise DataError(
        f"no images of --valid-subset {name} in {where}; expected a folder with train/, val/ or test/ in it, or leave"
        " --valid-subset away and give the images themselves as --data"
    )


def _own_validation(train: str | Path) -> Path | None:
    path = Path(train)
    return _own_folder(path, "validation") if path.is_dir() and _own_folder(path, "train") else None


def holds_out(train: Path, held_out: int) -> bool:
    """Whether :func:`open_splits`, without validation data, takes some of the training images to validate on.

    Args:
        held_out: how many it is told to; 0: as many as it finds right.
    """
    return bool(held_out) or _own_validation(train) is None


def where_validated(train: str | Path, validation: str | Path | None, held_out: int) -> str:
    """What :func:`open_splits` validates on, in words."""
    own = validation or (None if held_out else _own_validation(train))
    if own:
        return f"those of {own}"
    test = Path(train) / "test"
    return "held out of the training images" + (f" ({test} is left alone)" if test.is_dir() else "")


def open_splits(
    train: str | Path, validation: str | Path | None, held_out: int, seed: int, train_count: int = 0
) -> tuple[ImageSet, ImageSet]:
    """Images to train on, and images to validate on: those of ``validation``, or ``held_out`` of the training images,
    drawn by the seed. With neither, those of the folder's own ``val``, or a tenth of each class, 5,000 images at most.
    ``train_count`` keeps only so many of the former.

    Raises:
        DataError: nothing to read. ConfigError: more images are wanted than there are, or classes differ.
    """
    source = open_images(train)
    if source.classes < 2:
        raise DataError(
            f"{train} has images of {source.classes} class; expected a sub-folder for each of two or more classes: give"
            " the folder above, or the one with train/ and val/"
        )
    order = np.random.default_rng(seed).permutation(len(source))
    own = validation or (None if held_out else _own_validation(train))
    if own:
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
    """Take the first images of each class, in this order."""
    share, labels = min(_SHARE, _MOST / len(order)), source.labels[order]
    taken = []
    for label in range(source.classes):
        members = order[labels == label]
        taken.append(members[: max(int(share * len(members)), min(_FEW, len(members) // _FEW))])
    return np.concatenate(taken)


def _check_classes(train: str | Path, source: Source, validation: str | Path, other: Source) -> None:
    if list(source.names) == list(other.names):
        return
    if source.classes != other.classes:
        raise ConfigError(
            f"{train} has {source.classes} classes and {validation} {other.classes}; expected the same ones"
        )
    one, two = next(pair for pair in zip(source.names, other.names, strict=True) if pair[0] != pair[1])
    raise ConfigError(
        f"a class of {train} is {one!r} where {validation} has {two!r}; expected the same classes in the same order"
    )
