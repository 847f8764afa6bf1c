"""A host whose supernets are files that say how they behave; found by other processes through its entry point."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, quality

ROOT = Path(__file__).resolve().parents[2]


class ToySupernet:
    """Settings: ``wait_s``, ``die`` (the key of an architecture), ``fail`` (some raise, some have no loss)."""

    space = SPACE
    task: dict[str, Any] = {}  # noqa: RUF012 - the protocol's attribute

    def __init__(self, path: Path, **options: Any) -> None:
        self.settings = json.loads(path.read_text())
        with (path.parent / "opened.txt").open("a") as file:
            file.write(f"{os.getpid()} {options.get('device')}\n")

    def evaluate(self, architecture: Architecture) -> dict[str, float]:
        time.sleep(self.settings.get("wait_s", 0))
        if architecture.key == self.settings.get("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        digit = int(architecture.key, 16) % 7 if self.settings.get("fail") else 7
        if digit == 0:
            raise RuntimeError("out of memory")
        return {"loss": math.nan if digit == 1 else quality(architecture), "nll_loss": 0.1 * quality(architecture)}


class ToyHost:
    name = "toy"

    def recognises(self, checkpoint: Path) -> bool:
        return checkpoint.suffix == ".toy"

    def open(self, checkpoint: Path, **options: Any) -> ToySupernet:
        return ToySupernet(checkpoint, **options)


HOST = ToyHost()


def make_visible(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs the host in a folder on the path of this process and those it starts."""
    installed = folder / "toy_host-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-host\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[nas_ext.hosts]\ntoy = tests.search.toy_host:HOST\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
