"""Toys that many tests need: small stand-ins for what users bring."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.supernet.host import Host, Report, Supernet

__all__ = ["ROOT", "ToyHost", "ToySupernet", "plug_in", "show_other_processes"]

ROOT = Path(__file__).resolve().parents[1]


class ToySupernet(Supernet):
    """A supernet without weights, which scores architectures by a formula and remembers what it was asked.

    Args:
        score: architecture -> metrics; by default every loss is 1.
    """

    def __init__(
        self,
        space: SearchSpace | None = None,
        score: Callable[[Architecture], dict[str, float]] | None = None,
        task: Mapping[str, Any] | None = None,
    ) -> None:
        self.space = get_space("hat_small") if space is None else space
        self.score = score or (lambda architecture: {"loss": 1.0})
        self.task = dict(task or {})
        self.evaluated: list[Architecture] = []
        self.extracted: list[Architecture] = []

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        self.evaluated.append(architecture)
        return self.score(architecture)

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Write the architecture's key and say that it has 1,234,567 parameters."""
        self.extracted.append(architecture)
        path.write_text(architecture.key, encoding="utf-8")
        return 1_234_567


class ToyHost(Host):
    """A host whose checkpoints are the files that begin with ``prefix``; ``open`` remembers what it was given.

    Args:
        opened: checkpoint -> its supernet, called for each file that is opened; default: one toy for all.
    """

    def __init__(
        self, name: str = "toy", prefix: bytes = b"weights", opened: Callable[[Path], ToySupernet] | None = None
    ) -> None:
        self.name, self.prefix = name, prefix
        self.supernet = ToySupernet()
        self.opened = opened or (lambda checkpoint: self.supernet)
        self.checkpoint: Path | None = None
        self.options: dict[str, Any] = {}

    def recognises(self, checkpoint: Path) -> bool:
        return checkpoint.read_bytes().startswith(self.prefix)

    def open(self, checkpoint: Path, **options: Any) -> ToySupernet:
        self.checkpoint, self.options = checkpoint, options
        return self.opened(checkpoint)


def plug_in(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, name: str, target: str) -> None:
    """Install a distribution with one entry point, as far as Python can see, for the length of a test.

    Args:
        folder: an empty folder that is put on ``sys.path``.
        target: ``module:object``; the module is one that can be imported, such as one below ``tests``.
    """
    info = folder / f"plugged_{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plugged-{name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


def show_other_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that a test starts see what is plugged in there, the project and its tests."""
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
