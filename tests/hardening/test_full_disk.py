"""Where the disk is full, every writer ends in one line, and neither half a file nor a changed old one is left."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from nas_core.errors import NasExtError
from nas_core.files.writing import atomic_output, write_atomic, write_json

WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_atomic(path, "x" * 400_000),
    "json": lambda path: write_json(path, list(range(100_000))),
    "torch": lambda path: _within(path, lambda beside: torch.save({"w": torch.zeros(100_000)}, beside)),
    "safetensors": lambda path: _within(path, lambda beside: save_file({"w": torch.zeros(100_000)}, beside)),
    "numpy": lambda path: _within(path, lambda beside: np.save(beside.open("wb"), np.zeros(100_000))),
}


def _within(path: Path, write: Callable[[Path], object]) -> None:
    with atomic_output(path) as beside:
        write(beside)


@pytest.fixture
def full() -> Iterator[None]:
    """No file may have more than 100 kB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_is_one_line(kind: str, tmp_path: Path, full: None) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(NasExtError, match=r"cannot write .*model: .*the free space"):
        WRITERS[kind](path)
    assert [each.name for each in tmp_path.iterdir()] == ["model"] and path.read_bytes() == b"old"


def test_other_errors_of_a_block_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="of the network"), atomic_output(tmp_path / "model"):
        raise RuntimeError("of the network")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    path, left = tmp_path / "model", tmp_path / ".model.abc.part"
    left.write_bytes(b"half")
    with atomic_output(path) as beside:
        assert not left.exists()
        beside.write_bytes(b"new")
        write_atomic(path, "by another")
        assert beside.exists()
    assert path.read_bytes() == b"new" and len(list(tmp_path.iterdir())) == 1


def test_what_a_process_left_that_was_killed_just_now_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "model"
    killed = os.fork()
    if not killed:
        with atomic_output(path) as beside:
            beside.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(killed, 0)
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    write_atomic(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
