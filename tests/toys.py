"""Toys that many tests need: small stand-ins for what users bring."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["ROOT", "plug_in", "show_other_processes"]

ROOT = Path(__file__).resolve().parents[1]


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
