"""A teacher's most probable words on disk: found again, never half, and only for whom they are."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError, NasExtError, UnknownChoiceError
from nas_core.supernet.teacher import CacheSettings, TeacherCache, TopK, top_k, weights_digest

WORDS, KEPT = 30, 4
LENGTHS = [3, 1, 5, 2, 4, 2]
SETTINGS = CacheSettings(teacher="t", data="d", words=WORDS, kept=KEPT)


def rows_of(*samples: int, settings: CacheSettings = SETTINGS) -> TopK:
    """What the teacher says about these samples, the same whoever asks."""
    each = [torch.randn(LENGTHS[sample], settings.words, generator=torch.Generator().manual_seed(sample))
            for sample in samples]  # fmt: skip
    return top_k(torch.cat(each), settings.kept, settings.temperature)


def same(found: TopK | None, wanted: TopK, tolerance: float = 5e-4) -> bool:
    assert found is not None
    near = torch.allclose(found.probabilities, wanted.probabilities, atol=tolerance)
    return near and torch.equal(found.indices, wanted.indices)


@pytest.mark.parametrize(("numbers", "tolerance"), [("fp16", 5e-4), ("fp32", 0.0)])
@pytest.mark.parametrize("words", [WORDS, 70_000])
def test_what_was_put_is_found_in_any_order(numbers: str, tolerance: float, words: int, tmp_path: Path) -> None:
    settings = replace(SETTINGS, numbers=numbers, words=words)
    with TeacherCache(tmp_path / "cache", settings, LENGTHS) as cache:
        assert cache.get([0]) is None and cache.filled == 0
        cache.put([4, 0], rows_of(4, 0, settings=settings))
        cache.put([2], rows_of(2, settings=settings))
        assert same(cache.get([0, 2, 4]), rows_of(0, 2, 4, settings=settings), tolerance)
        assert cache.get([0, 1]) is None and cache.filled == 3
    with TeacherCache(tmp_path / "cache", settings, LENGTHS) as again:
        assert same(again.get([2, 4]), rows_of(2, 4, settings=settings), tolerance)
        assert again.filled == 3


def test_a_check_of_each_row_is_found_beside_it(tmp_path: Path) -> None:
    settings = replace(SETTINGS, checked=True)
    with TeacherCache(tmp_path / "cache", settings, LENGTHS) as cache:
        cache.put([2, 0], rows_of(2, 0), torch.arange(8.0))
        told = cache.size_mb * 1e6
    assert told == sum(LENGTHS) * (KEPT * 4 + 4) + len(LENGTHS)
    with TeacherCache(tmp_path / "cache", settings, LENGTHS) as again:
        assert again.checks([0, 2]).tolist() == [5, 6, 7, 0, 1, 2, 3, 4]
        assert same(again.get([0, 2]), rows_of(0, 2))


def test_its_size_on_disk_is_told_and_taken_at_once(tmp_path: Path) -> None:
    with TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS) as cache:
        told = cache.size_mb * 1e6
        assert told == sum(LENGTHS) * KEPT * 4 + len(LENGTHS)
        written = sum(path.stat().st_size for path in (tmp_path / "cache").glob("*.npy"))
    assert told < written < told + 3 * 256


def test_nothing_but_arrays_and_json(tmp_path: Path) -> None:
    TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS).close()
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".json", ".npy", ".npy", ".npy"]
    for path in (tmp_path / "cache").glob("*.npy"):
        np.load(path, allow_pickle=False)
    about = json.loads((tmp_path / "cache" / "teacher.json").read_text(encoding="utf-8"))
    assert (about["teacher"], about["kept"], about["samples"], about["rows"]) == ("t", KEPT, 6, 17)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"teacher": "other"}, "another teacher"),
        ({"data": "other"}, "other data"),
        ({"words": 31}, "another vocabulary"),
        ({"kept": 5}, "--teacher-top-k"),
        ({"temperature": 2.0}, "another temperature"),
        ({"numbers": "fp32"}, "another precision"),
    ],
)
def test_a_cache_of_something_else(changed: dict[str, object], said: str, tmp_path: Path) -> None:
    with TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS) as cache:
        cache.put([1], rows_of(1))
    before = {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    with pytest.raises(DataError, match=said):
        TeacherCache(tmp_path / "cache", replace(SETTINGS, **changed), LENGTHS)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == before


def test_data_of_other_lengths(tmp_path: Path) -> None:
    TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS).close()
    with pytest.raises(DataError, match="other lengths"):
        TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS[::-1])
    with TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS) as cache:
        with pytest.raises(DataError, match="samples of 3 rows"):
            cache.put([0], rows_of(1))
        with pytest.raises(DataError, match="sample 6 is none of the 6"):
            cache.get([6])


def test_a_folder_of_other_files_and_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match="give a new or an empty folder"):
        TeacherCache(tmp_path / "full", SETTINGS, LENGTHS)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    (tmp_path / "empty").mkdir()
    TeacherCache(tmp_path / "empty", SETTINGS, LENGTHS).close()
    assert (tmp_path / "empty" / "teacher.json").exists()


@pytest.mark.parametrize("name", ["probabilities.npy", "words.npy", "samples.npy"])
def test_a_damaged_cache(name: str, tmp_path: Path) -> None:
    TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS).close()
    path = tmp_path / "cache" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match="missing or damaged"):
        TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS)
    (tmp_path / "cache" / "teacher.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        TeacherCache(tmp_path / "cache", SETTINGS, LENGTHS)


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="expected 1 to 30"):
        replace(SETTINGS, kept=31)
    with pytest.raises(UnknownChoiceError, match="fp8"):
        replace(SETTINGS, numbers="fp8")


def test_no_sample_and_no_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sample"):
        TeacherCache(tmp_path / "cache", SETTINGS, [])
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(NasExtError, match="cannot"):
        TeacherCache(tmp_path / "file" / "cache", SETTINGS, LENGTHS)


def _killed_while_writing(folder: Path, after: int) -> None:
    """Die at the ``after``-th write to a file, in the middle of it."""
    real, writes = os.pwrite, [0]

    def pwrite(descriptor: int, content: bytes, offset: int) -> int:
        writes[0] += 1
        if writes[0] == after:
            real(descriptor, content[: len(content) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(descriptor, content, offset)

    os.pwrite = pwrite
    with TeacherCache(folder, SETTINGS, LENGTHS) as cache:
        for sample in range(len(LENGTHS)):
            cache.put([sample], rows_of(sample))
            cache.flush()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("after", [1, 2, 3, 4, 8, 17])
def test_killed_at_any_moment(after: int, tmp_path: Path) -> None:
    """Each sample is two parts and a flag: what is flagged is whole, and the rest is computed again."""
    process = multiprocessing.get_context("fork").Process(target=_killed_while_writing, args=(tmp_path / "c", after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with TeacherCache(tmp_path / "c", SETTINGS, LENGTHS) as cache:
        kept = [sample for sample in range(len(LENGTHS)) if cache.has([sample])]
        assert len(kept) == (after - 1) // 3
        assert all(same(cache.get([sample]), rows_of(sample)) for sample in kept)
        cache.put([5, 3], rows_of(5, 3))
        assert same(cache.get([3, 5]), rows_of(3, 5))


def _fill(folder: Path, samples: list[int]) -> None:
    with TeacherCache(folder, SETTINGS, LENGTHS) as cache:
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
    with TeacherCache(tmp_path / "c", SETTINGS, LENGTHS) as cache:
        assert cache.filled == len(LENGTHS)
        assert same(cache.get(range(6)), rows_of(*range(6)))


def test_one_worker_reads_what_another_has_flushed(tmp_path: Path) -> None:
    with (
        TeacherCache(tmp_path / "c", SETTINGS, LENGTHS) as one,
        TeacherCache(tmp_path / "c", SETTINGS, LENGTHS) as other,
    ):
        one.put([2], rows_of(2))
        assert one.has([2]) and not other.has([2])
        one.flush()
        assert same(other.get([2]), rows_of(2))


def test_a_digest_tells_weights_apart() -> None:
    state = {"a": torch.zeros(2, 3), "b": torch.ones(2, dtype=torch.float16)}
    same_state = {"b": state["b"].clone(), "a": torch.zeros(3, 2).t()}
    assert weights_digest(state) == weights_digest(same_state)
    others = [{**state, "a": torch.zeros(3, 2)}, {**state, "c": torch.zeros(1)}, {**state, "b": torch.zeros(2).half()}]
    assert len({weights_digest(each) for each in [state, *others]}) == 4
