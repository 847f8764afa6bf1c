"""A teacher's most probable words on disk: found again, never half, and only for whom they are."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.supernet.teacher.cache import CacheSettings, TeacherCache
from nas_core.supernet.teacher.losses import TopK, top_k

WORDS, KEPT = 30, 4
LENGTHS = [3, 1, 5, 2, 4, 2]
SETTINGS = CacheSettings(teacher="t", data="d", words=WORDS, kept=KEPT)


@contextmanager
def opened(folder: Path, settings: CacheSettings, lengths: list[int]) -> Iterator[TeacherCache]:
    """Open a cache, and flush it at the end."""
    cache = TeacherCache(folder, settings, lengths)
    yield cache
    cache.flush()


def rows_of(*samples: int, settings: CacheSettings = SETTINGS) -> TopK:
    """What the teacher says about these samples, the same whoever asks."""
    logits = [torch.randn(LENGTHS[sample], settings.words, generator=torch.Generator().manual_seed(sample))
            for sample in samples]  # fmt: skip
    return top_k(torch.cat(logits), settings.kept, settings.temperature)


def same(result: TopK | None, expected: TopK, tolerance: float = 5e-4) -> bool:
    assert result is not None
    near = torch.allclose(result.probabilities, expected.probabilities, atol=tolerance)
    return near and torch.equal(result.indices, expected.indices)


@pytest.mark.parametrize(("numbers", "tolerance"), [("fp16", 5e-4), ("fp32", 0.0)])
@pytest.mark.parametrize("words", [WORDS, 70_000])
def test_what_was_put_is_found_in_any_order(numbers: str, tolerance: float, words: int, tmp_path: Path) -> None:
    settings = replace(SETTINGS, numbers=numbers, words=words)
    with opened(tmp_path / "cache", settings, LENGTHS) as cache:
        assert cache.get([0]) is None and cache.filled == 0
        cache.put([4, 0], rows_of(4, 0, settings=settings))
        cache.put([2], rows_of(2, settings=settings))
        assert same(cache.get([0, 2, 4]), rows_of(0, 2, 4, settings=settings), tolerance)
        assert cache.get([0, 1]) is None and cache.filled == 3
    with opened(tmp_path / "cache", settings, LENGTHS) as repeated:
        assert same(repeated.get([2, 4]), rows_of(2, 4, settings=settings), tolerance)
        assert repeated.filled == 3


def _fill(folder: Path, samples: list[int]) -> None:
    with opened(folder, SETTINGS, LENGTHS) as cache:
        for sample in samples:
            cache.put([sample], rows_of(sample))


def test_two_workers_write_one_cache(tmp_path: Path) -> None:
    """Both make it, and both compute two of the samples."""
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_fill, args=(tmp_path / "c", part)) for part in ([0, 1, 2, 3], [5, 4, 3, 2])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    with opened(tmp_path / "c", SETTINGS, LENGTHS) as cache:
        assert cache.filled == len(LENGTHS)
        assert same(cache.get(range(6)), rows_of(*range(6)))


def _killed_while_writing(folder: Path, after: int) -> None:
    """Die at a flush, when the rows of that many samples are written."""
    real, flushes = np.memmap.flush, [0]

    def flush(array: np.memmap) -> None:
        flushes[0] += 1
        if flushes[0] == after:
            os.kill(os.getpid(), signal.SIGKILL)
        real(array)

    with opened(folder, SETTINGS, LENGTHS) as cache:
        np.memmap.flush = flush  # type: ignore[method-assign]
        for sample in range(len(LENGTHS)):
            cache.put([sample], rows_of(sample))
            cache.flush()


@pytest.mark.parametrize("after", [1, 5, 12])
def test_killed_at_any_moment(after: int, tmp_path: Path) -> None:
    """Each sample is two parts and a flag: flagged ones are whole, and the others are computed again."""
    process = multiprocessing.get_context("fork").Process(target=_killed_while_writing, args=(tmp_path / "c", after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with opened(tmp_path / "c", SETTINGS, LENGTHS) as cache:
        kept = [sample for sample in range(len(LENGTHS)) if cache.has([sample])]
        assert len(kept) == (after - 1) // 2
        assert all(same(cache.get([sample]), rows_of(sample)) for sample in kept)
        cache.put([5, 3], rows_of(5, 3))
        assert same(cache.get([3, 5]), rows_of(3, 5))


def damaged(folder: Path) -> TeacherCache:
    path = folder / "words.npy"
    path.write_bytes(path.read_bytes()[:-3])
    return TeacherCache(folder, SETTINGS, LENGTHS)


def cache_with(**changed: Any) -> Callable[[Path], Any]:
    return lambda folder: TeacherCache(folder, replace(SETTINGS, **changed), LENGTHS)


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (cache_with(teacher="other"), DataError, "another teacher"),
        (cache_with(temperature=2.0), DataError, "2.0"),
        (cache_with(numbers="fp8"), UnknownChoiceError, "'fp8'"),
        (cache_with(kept=31), ConfigError, "31"),
        (lambda folder: TeacherCache(folder, SETTINGS, LENGTHS[::-1]), DataError, "lengths"),
        (lambda folder: TeacherCache(folder, SETTINGS, []), DataError, "no sample"),
        (lambda folder: TeacherCache(folder, SETTINGS, LENGTHS).get([6]), DataError, "sample 6"),
        (lambda folder: TeacherCache(folder.parent, SETTINGS, LENGTHS), DataError, "not a cache"),
        (lambda folder: TeacherCache(folder / "words.npy" / "x", SETTINGS, LENGTHS), NasExtError, "words.npy"),
        (damaged, DataError, "words.npy"),
    ],
)
def test_bad_input(call: Callable[[Path], Any], error: type[NasExtError], value: str, tmp_path: Path) -> None:
    with opened(tmp_path / "cache", SETTINGS, LENGTHS) as cache:
        cache.put([1], rows_of(1))
    with pytest.raises(error) as caught:
        call(tmp_path / "cache")
    assert value in str(caught.value) and "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
