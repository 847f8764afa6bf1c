"""The files of a teacher's cache: whose logits they hold, their types, and their full size from the beginning."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.files import os_errors

_TYPES: dict[str, np.dtype[Any]] = {"fp16": np.dtype("<f2"), "fp32": np.dtype("<f4")}
_CHECK = np.dtype("<f4")


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """Whose logits a cache holds, and of what.

    Raises:
        ConfigError: more words are to be kept than there are. UnknownChoiceError: no such precision.
    """

    teacher: str
    """Digest of the teacher's weights: :func:`weights_digest`."""
    data: str
    """Digest of the samples, by which other data is told."""
    words: int
    """V, of the vocabulary, or the number of classes."""
    kept: int
    """K, words that are kept of each row."""
    temperature: float = 1.0
    """At which the probabilities are."""
    numbers: str = "fp16"
    """Precision of the probabilities on disk: ``fp16`` or ``fp32``."""
    checked: bool = False
    """Whether a number is kept beside each row, by which a reader tells that it asks of the same input."""

    def __post_init__(self) -> None:
        if not 1 <= self.kept <= self.words:
            raise ConfigError(f"{self.kept} words of each row are to be kept; expected 1 to {self.words}, all of them")
        if self.numbers not in _TYPES:
            raise unknown_choice("precision of a cache", self.numbers, _TYPES)

    @property
    def row_bytes(self) -> int:
        """Size of a row on disk."""
        check = _CHECK.itemsize if self.checked else 0
        return self.kept * (_TYPES[self.numbers].itemsize + self._word_type.itemsize) + check

    @property
    def _word_type(self) -> np.dtype[Any]:
        return np.dtype("<u2") if self.words <= 1 << 16 else np.dtype("<i4")

    def files(self) -> dict[str, tuple[int, np.dtype[Any]]]:
        """The files that hold something of each row (probabilities, words and perhaps checks): numbers a row, type."""
        found = {"probabilities.npy": (self.kept, _TYPES[self.numbers]), "words.npy": (self.kept, self._word_type)}
        return {**found, "checks.npy": (1, _CHECK)} if self.checked else found


def weights_digest(state: Mapping[str, Tensor]) -> str:
    """A digest of all weights of a network, with their names: what tells one teacher from another."""

    def parts() -> Iterator[np.ndarray]:
        for name in sorted(state):
            tensor = state[name].detach().cpu().contiguous()
            yield np.frombuffer(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), dtype=np.uint8)
            yield tensor.flatten().view(torch.uint8).numpy()

    return digest_of(parts())


def digest_of(parts: Iterable[np.ndarray]) -> str:
    """A digest of the arrays, one after the other."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def reserve(path: Path, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    """A file of zeros that has its whole place on the disk: a full disk is told now."""
    with os_errors("write", path), path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        os.ftruncate(file.fileno(), file.tell() + size)
        if size:
            os.posix_fallocate(file.fileno(), file.tell(), size)
