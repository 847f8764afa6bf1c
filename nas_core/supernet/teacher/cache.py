"""On-disk cache of a teacher's most probable words for each row of each training sample.

Several processes may write at the same time, and may be killed at any time.

Shapes: N rows of several samples in sequence, K words.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.errors import ConfigError, DataError, check_choice
from nas_core.files.reading import read_json
from nas_core.files.writing import make_folder, os_errors, write_json
from nas_core.supernet.teacher.losses import TopK

_TYPES: dict[str, np.dtype[Any]] = {"fp16": np.dtype("<f2"), "fp32": np.dtype("<f4")}
_ABOUT, _FLAGS = "teacher.json", "samples.npy"
_VERSION = 1
# Samples written between two flushes to disk.
_PENDING = 1024


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """Teacher, data and number formats of a cache."""

    teacher: str
    """Hash of the teacher's weights, from :func:`weights_digest`."""
    data: str
    """Hash of the samples."""
    words: int
    """Vocabulary size or number of classes."""
    kept: int
    """Number of words K that are stored for each row."""
    temperature: float = 1.0
    """Softmax temperature."""
    numbers: str = "fp16"
    """Precision of probabilities on disk: ``fp16`` or ``fp32``."""

    def __post_init__(self) -> None:
        if not 1 <= self.kept <= self.words:
            raise ConfigError(
                f"kept is {self.kept}; expected 1 to {self.words}, the vocabulary size or number of classes"
            )
        check_choice("precision of a cache", self.numbers, _TYPES)

    @property
    def row_bytes(self) -> int:
        return sum(width * kind.itemsize for width, kind in self.files().values())

    def files(self) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Return (numbers per row, dtype) by file name."""
        word_type = np.dtype("<u2") if self.words <= 1 << 16 else np.dtype("<i4")
        return {"probabilities.npy": (self.kept, _TYPES[self.numbers]), "words.npy": (self.kept, word_type)}


def weights_digest(state: Mapping[str, Tensor]) -> str:
    def parts() -> Iterator[np.ndarray]:
        for name in sorted(state):
            tensor = state[name].detach().cpu().contiguous()
            yield np.frombuffer(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), dtype=np.uint8)
            yield tensor.flatten().view(torch.uint8).numpy()

    return digest_of(parts())


def digest_of(parts: Iterable[np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


class TeacherCache:
    """Folder with the teacher's most probable words (or classes) for each row (prediction) of each sample.

    Args:
        folder: new or empty folder, or a cache with the same settings and samples.
        lengths: number of rows of each sample. Samples are identified by their index.

    Raises:
        DataError: the folder is not a cache, or belongs to another teacher, other data or settings.
    """

    def __init__(self, folder: str | Path, settings: CacheSettings, lengths: Sequence[int] | np.ndarray) -> None:
        self.folder, self.settings = Path(folder), settings
        self._lengths = np.asarray(lengths, dtype=np.int64)
        self._ends = np.cumsum(self._lengths)
        if not self._lengths.sum() or self._lengths.min() < 0:
            raise DataError(
                "the data has no samples for the cache of teacher outputs; give data with at least one sample"
            )
        files = {name: ((self.rows, width), kind) for name, (width, kind) in settings.files().items()}
        self._arrays = {**files, _FLAGS: ((len(self._lengths),), np.dtype("|u1"))}
        self._about = {
            "format": _VERSION, **asdict(settings), "samples": len(self._lengths), "rows": self.rows,
            "lengths": digest_of([self._lengths]),
        }  # fmt: skip
        if not (self.folder / _ABOUT).exists():
            self._make()
        *self._maps, self._flags = self._opened()
        self._pending: dict[int, None] = {}

    @property
    def rows(self) -> int:
        return int(self._ends[-1])

    @property
    def size_mb(self) -> float:
        """Size on disk in megabytes."""
        return (self.rows * self.settings.row_bytes + len(self._lengths)) / 1e6

    @property
    def filled(self) -> int:
        """Number of samples in the cache, by all processes."""
        return int(np.count_nonzero(self._flags)) + sum(not self._flags[sample] for sample in self._pending)

    def has(self, samples: Sequence[int]) -> bool:
        if wrong := [sample for sample in samples if not 0 <= sample < len(self._lengths)]:
            raise DataError(
                f"sample {wrong[0]} is not in cache {self.folder} of {len(self._lengths)} samples; use the same data"
            )
        return all(self._flags[sample] or sample in self._pending for sample in samples)

    def get(self, samples: Sequence[int], device: torch.device | str = "cpu") -> TopK | None:
        """Return float32 probabilities and words ``(N, K)`` of samples, or None if one is missing."""
        if not self.has(samples):
            return None
        rows = self._rows(samples)
        probabilities = torch.from_numpy(self._maps[0][rows].astype(np.float32))
        indices = torch.from_numpy(self._maps[1][rows].astype(np.int64))
        return TopK(probabilities.to(device, non_blocking=True), indices.to(device, non_blocking=True))

    def put(self, samples: Sequence[int], rows: TopK) -> None:
        """Write the rows ``(N, K)`` of samples."""
        parts = [rows.probabilities.float(), rows.indices]
        places = self._rows(samples)
        for array, part in zip(self._maps, parts, strict=True):
            array[places] = part.cpu().numpy().astype(array.dtype)
        self._pending |= dict.fromkeys(map(int, samples))
        if len(self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Write all rows to disk."""
        with os_errors("write", self.folder):
            # Flags are set when rows are on disk, so that the process may be killed at any time.
            for array in self._maps if self._pending else ():
                array.flush()
            self._flags[list(self._pending)] = 1
        self._pending = {}

    def _rows(self, samples: Sequence[int]) -> np.ndarray:
        return np.concatenate([np.arange(self._ends[s] - self._lengths[s], self._ends[s]) for s in samples])

    def _make(self) -> None:
        make_folder(self.folder.parent)
        with os_errors("write", self.folder):  # in another folder first: several processes may create the cache
            new = Path(tempfile.mkdtemp(dir=self.folder.parent, prefix=f".{self.folder.name}.", suffix=".part"))
            try:
                for name, (shape, kind) in self._arrays.items():
                    array = np.lib.format.open_memmap(new / name, "w+", kind, shape)
                    with (new / name).open("r+b") as file:  # a full disk is an error now
                        os.posix_fallocate(file.fileno(), 0, array.offset + array.nbytes)
                write_json(new / _ABOUT, self._about)
                new.chmod(0o755)
                with contextlib.suppress(OSError):  # the folder exists by now: opening it reports what it is
                    new.rename(self.folder)
            finally:
                shutil.rmtree(new, ignore_errors=True)

    def _opened(self) -> list[np.memmap[Any, Any]]:
        path = self.folder / _ABOUT
        if not path.exists():
            raise DataError(f"{self.folder} is not a cache of teacher outputs; give a new or an empty folder")
        about = read_json(path)
        if not isinstance(about, dict) or about.get("format") != _VERSION:
            raise DataError(f"{path} is damaged or of another release; give a new folder")
        for name, value in self._about.items():
            if about.get(name) != value:
                raise DataError(
                    f"cache {self.folder} has another teacher, data or settings: {name} is {about.get(name)!r},"
                    f" expected {value!r}; give a new folder, or the same settings"
                )
        maps = []
        for name, (shape, kind) in self._arrays.items():
            try:
                array = np.load(self.folder / name, mmap_mode="r")  # writeable, a short file would be extended
            except (OSError, ValueError):
                array = None
            if array is None or (array.shape, array.dtype) != (shape, kind):
                raise DataError(f"{self.folder / name} is missing or damaged; remove the folder, or give a new one")
            maps.append(np.load(self.folder / name, mmap_mode="r+"))
        return maps
