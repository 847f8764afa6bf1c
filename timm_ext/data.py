"""Labelled images: folders with one sub-folder per class, or npz files of JPEG bytes.

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
from nas_core.files import DAMAGED_ARCHIVE

__all__ = ["ImageSet", "JpegFile", "Source", "open_images", "open_splits"]


class Source(Protocol):
    """Images as they are stored."""

    classes: int

    def __len__(self) -> int: ...

    def image(self, index: int) -> tuple[Image.Image, int]: ...


class JpegFile:
    """Images of an npz file.

    Raises:
        DataError: the file is missing, no npz, or lacks one of its arrays.
    """

    def __init__(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as table:
                self.data, self.offset = table["data"], table["offset"]
                self.label, names = table["label"], table["classes"]
        except FileNotFoundError:
            raise DataError(
                f"no file {path}; give an npz of images, or a folder with one sub-folder per class"
            ) from None
        except DAMAGED_ARCHIVE as error:
            raise DataError(f"{path} is no npz with data, offset, label and classes ({error})") from None
        self.path, self.classes = path, len(names)
        if len(self.offset) != len(self.label) + 1 or int(self.offset[-1]) != len(self.data):
            raise DataError(f"{path} has {len(self.label)} labels and {len(self.offset)} offsets; expected one more")

    def __len__(self) -> int:
        return len(self.label)

    def image(self, index: int) -> tuple[Image.Image, int]:
        content = self.data[self.offset[index] : self.offset[index + 1]].tobytes()
        try:
            return Image.open(io.BytesIO(content)).convert("RGB"), int(self.label[index])
        except (UnidentifiedImageError, OSError) as error:
            raise DataError(f"image {index} of {self.path} cannot be read ({error})") from None


class _Folder:
    """Images of a folder, by timm's reader."""

    def __init__(self, path: Path, split: str) -> None:
        try:
            self.dataset: Any = create_dataset("", root=str(path), split=split)
        except (RuntimeError, FileNotFoundError, AssertionError) as error:
            raise DataError(f"{path} holds no images in one sub-folder per class ({error})") from None
        self.classes = len(self.dataset.reader.class_to_idx)

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


def open_images(path: str | Path, split: str = "train") -> Source:
    """An npz file, or a folder (``split`` picks its sub-folder ``train`` or ``validation`` where there is one).

    Raises:
        DataError: nothing there, or nothing that is known.
    """
    path = Path(path)
    return _Folder(path, split) if path.is_dir() else JpegFile(path)


def open_splits(
    train: str | Path, validation: str | Path | None, held_out: int, seed: int, train_count: int = 0
) -> tuple[ImageSet, ImageSet]:
    """Images to train on, and images to validate on: those of ``validation``, or ``held_out`` of the training images,
    drawn by the seed. ``train_count`` keeps only so many of the former.

    Raises:
        DataError: nothing to read. ConfigError: more images are wanted than there are, or classes differ.
    """
    source = open_images(train)
    order = np.random.default_rng(seed).permutation(len(source))
    if validation is not None:
        other = open_images(validation, "validation")
        if other.classes != source.classes:
            raise ConfigError(
                f"{train} has {source.classes} classes and {validation} {other.classes}; expected as many"
            )
        held, rest = ImageSet(other), order
    else:
        if not 0 < held_out < len(order):
            raise ConfigError(
                f"--val-count {held_out} of {len(order)} images; expected fewer, or give --val-data a set of its own"
            )
        held, rest = ImageSet(source, np.sort(order[:held_out])), order[held_out:]
    if train_count > len(rest):
        raise ConfigError(f"--train-count {train_count}, but there are {len(rest)} images to train on")
    return ImageSet(source, np.sort(rest[: train_count or None])), held
