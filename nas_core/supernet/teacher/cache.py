"""What a teacher said about each training sample, kept on disk: its most probable words, row by row.

The folder has its full size from the beginning, a place for each sample. A sample counts once its rows are on the disk
and then its flag, so that a process may be killed at any moment, and several may write: two that compute the same
sample write the same numbers.

Shapes: N rows of several samples one after the other, K words.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nas_core.errors import DataError
from nas_core.files import make_folder, os_errors, read_json, write_json
from nas_core.supernet.teacher.cache_files import CacheSettings, digest_of, reserve
from nas_core.supernet.teacher.losses import TopK

_ABOUT, _FLAGS = "teacher.json", "samples.npy"
_VERSION = 1
_PENDING = 1024
"""Samples whose rows wait to be on the disk before they are flagged: to ask the disk for each would take longer than to
compute it."""
_WHAT = {
    "teacher": "another teacher",
    "data": "other data",
    "words": "another vocabulary",
    "kept": "another number of words (--teacher-top-k)",
    "temperature": "another temperature",
    "numbers": "another precision of numbers",
}


class TeacherCache:
    """A folder with the most probable words of each row of each sample: made if it is not there, else continued.

    Args:
        folder: a new or empty folder, or a cache of the same settings and samples.
        settings: whose logits they are; a cache of others is an error.
        lengths: rows of each sample; a sample's key is its index here.

    Raises:
        DataError: the folder holds a cache of another teacher, other data or settings, or something else.
        NasExtError: it cannot be written, as the disk is full.
    """

    def __init__(self, folder: str | Path, settings: CacheSettings, lengths: Sequence[int] | np.ndarray) -> None:
        self.folder, self.settings, self._rows = Path(folder), settings, settings.files()
        self._ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
        self._lengths = np.asarray(lengths, dtype=np.int64)
        if not self._lengths.sum() or self._lengths.min() < 0:
            raise DataError("there is no sample to keep a teacher's logits of; give data with one or more")
        self._about = {"format": _VERSION, **asdict(settings), "samples": len(self._lengths), "rows": self.rows}
        if not (self.folder / _ABOUT).exists():
            self._make()
        self._check()
        with os_errors("read", self.folder):
            self._maps = [np.load(self.folder / name, mmap_mode="r") for name in self._rows]
            self._flags = np.load(self.folder / _FLAGS, mmap_mode="r")
            self._files = {name: os.open(self.folder / name, os.O_RDWR) for name in (*self._rows, _FLAGS)}
        self._pending: dict[int, None] = {}

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """The rows of all samples."""
        return int(self._ends[-1])

    @property
    def size_mb(self) -> float:
        """The size of the whole folder on disk in megabytes, also before it is filled."""
        return (self.rows * self.settings.row_bytes + len(self._lengths)) / 1e6

    @property
    def filled(self) -> int:
        """Samples that can be read, of all processes."""
        return int(np.count_nonzero(self._flags)) + sum(not self._flags[sample] for sample in self._pending)

    def has(self, samples: Sequence[int]) -> bool:
        """Whether all of these can be read."""
        return all(self._flags[sample] or sample in self._pending for sample in self._known(samples))

    def get(self, samples: Sequence[int], device: torch.device | str = "cpu") -> TopK | None:
        """The rows of these samples, one sample after the other: (N, K) probabilities in float32, and words; None if
        one of them is not there yet."""
        if not self.has(samples):
            return None
        found = self._read(samples, self._maps[:2])
        probabilities = torch.from_numpy(found[0].astype(np.float32))
        words = torch.from_numpy(found[1].astype(np.int64))
        return TopK(probabilities.to(device, non_blocking=True), words.to(device, non_blocking=True))

    def checks(self, samples: Sequence[int]) -> Tensor:
        """The checks (N) that were put beside the rows of these samples, which are there."""
        assert self.settings.checked and self.has(samples)
        return torch.from_numpy(self._read(samples, self._maps[2:])[0].astype(np.float32)).squeeze(1)

    def _read(self, samples: Sequence[int], maps: Sequence[np.ndarray]) -> list[np.ndarray]:
        rows = np.concatenate([np.arange(*self._span(sample)) for sample in samples])
        return [np.ascontiguousarray(numbers[rows]) for numbers in maps]

    # -- writing -------------------------------------------------------------------------------------------------------

    def put(self, samples: Sequence[int], rows: TopK, checks: Tensor | None = None) -> None:
        """Keep the rows (N, K) of these samples, which stand one sample after the other, and with ``settings.checked``
        as many checks (N).

        Raises:
            DataError: there are more or fewer rows than these samples have. NasExtError: they cannot be written.
        """
        wanted = int(self._lengths[self._known(samples)].sum())
        if tuple(rows.probabilities.shape) != (wanted, self.settings.kept):
            raise DataError(
                f"the teacher gave {tuple(rows.probabilities.shape)} probabilities for samples of {wanted} rows, of"
                f" which {self.settings.kept} words are kept; the data is not that of which {self.folder} is a cache"
            )
        assert (checks is not None) == self.settings.checked, "checks are kept where the settings say so"
        given = [rows.probabilities.float(), rows.indices, *([] if checks is None else [checks.unsqueeze(1)])]
        types = [kind for _, kind in self._rows.values()]
        contents = [numbers.cpu().numpy().astype(kind) for numbers, kind in zip(given, types, strict=True)]
        begin = 0
        for sample in samples:
            start, end = self._span(sample)
            for name, held, content in zip(self._rows, self._maps, contents, strict=True):
                part = np.ascontiguousarray(content[begin : begin + end - start])
                self._write(name, held.offset + start * part.itemsize * part.shape[1], part.tobytes())
            begin += end - start
        self._pending |= dict.fromkeys(int(sample) for sample in samples)
        if len(self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Wait until everything is on the disk, and say that it is there."""
        if not self._pending:
            return
        with os_errors("write", self.folder):
            for name in self._rows:
                os.fdatasync(self._files[name])
        for sample in self._pending:
            self._write(_FLAGS, self._flags.offset + sample, b"\x01")
        self._pending = {}

    def close(self) -> None:
        """Flush, and let the files go."""
        self.flush()
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}

    def __enter__(self) -> TeacherCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- files ---------------------------------------------------------------------------------------------------------

    def _span(self, sample: int) -> tuple[int, int]:
        end = int(self._ends[sample])
        return end - int(self._lengths[sample]), end

    def _known(self, samples: Sequence[int]) -> list[int]:
        wrong = next((sample for sample in samples if not 0 <= sample < len(self._lengths)), None)
        if wrong is not None:
            raise DataError(f"sample {wrong} is none of the {len(self._lengths)} of {self.folder}; other data was read")
        return list(samples)

    def _write(self, name: str, offset: int, content: bytes) -> None:
        with os_errors("write", self.folder / name):
            done = 0
            while done < len(content):
                done += os.pwrite(self._files[name], content[done:], offset + done)

    def _make(self) -> None:
        """All files beside the folder, which becomes it at once: another process may do so first."""
        make_folder(self.folder.parent)
        with os_errors("write", self.folder):
            beside = Path(tempfile.mkdtemp(dir=self.folder.parent, prefix=f".{self.folder.name}.", suffix=".part"))
        try:
            for name, (width, kind) in self._rows.items():
                reserve(beside / name, (self.rows, width), kind)
            reserve(beside / _FLAGS, (len(self._lengths),), np.dtype("|u1"))
            write_json(beside / _ABOUT, {**self._about, "lengths": digest_of([self._lengths])})
            beside.chmod(0o777 & ~_umask())
            with contextlib.suppress(OSError):  # there is one by now, or something else: whoever reads it says so
                beside.rename(self.folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _check(self) -> None:
        path = self.folder / _ABOUT
        if not path.exists():
            raise DataError(f"{self.folder} holds no cache of a teacher's logits; give a new or an empty folder")
        known = read_json(path)
        if not isinstance(known, dict) or known.get("format") != _VERSION:
            raise DataError(f"{path} is of another release or damaged; give a new folder")
        for name, what in _WHAT.items():
            if known.get(name) != self._about[name]:
                raise DataError(
                    f"{self.folder} is the cache of {what}: {name} {known.get(name)!r}, here {self._about[name]!r};"
                    " give a new folder, or the settings it was made with"
                )
        if known.get("lengths") != digest_of([self._lengths]):
            raise DataError(
                f"{self.folder} is the cache of other data: its samples have other lengths; give a new folder"
            )
        for name in (*self._rows, _FLAGS):
            with contextlib.suppress(OSError, ValueError):
                found = np.load(self.folder / name, mmap_mode="r")
                if len(found) == (len(self._lengths) if name == _FLAGS else self.rows):
                    continue
            raise DataError(f"{self.folder / name} is missing or damaged; remove the folder, or give a new one")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
