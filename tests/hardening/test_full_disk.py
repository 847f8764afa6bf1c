"""On a full disk every writer ends in one line; neither half a file nor a changed old one is left."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from nas_core.cli import main
from nas_core.errors import NasExtError
from nas_core.files.writing import atomic_output, write_atomic, write_json

WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_atomic(path, "x" * 400_000),
    "json": lambda path: write_json(path, list(range(100_000))),
    "torch": lambda path: _within(path, lambda temporary: torch.save({"w": torch.zeros(100_000)}, temporary)),
    "safetensors": lambda path: _within(path, lambda temporary: save_file({"w": torch.zeros(100_000)}, temporary)),
    "numpy": lambda path: _within(path, lambda temporary: np.save(temporary.open("wb"), np.zeros(100_000))),
}


def _within(path: Path, write: Callable[[Path], object]) -> None:
    with atomic_output(path) as temporary:
        write(temporary)


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


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    path, left = tmp_path / "model", tmp_path / ".model.abc.part"
    left.write_bytes(b"half")
    with atomic_output(path) as temporary:
        assert not left.exists()
        temporary.write_bytes(b"new")
        write_atomic(path, "by another")
        assert temporary.exists()
    assert path.read_bytes() == b"new" and len(list(tmp_path.iterdir())) == 1


def test_a_command_that_is_terminated_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object, **__: object) -> None:
        monkeypatch.setattr("os.fsync", lambda _: signal.raise_signal(signal.SIGTERM))
        write_atomic(tmp_path / "file", "new")

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr("nas_core.cli.application", lambda arguments: write)
    assert main(["lab", "space", "list"]) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "old"
