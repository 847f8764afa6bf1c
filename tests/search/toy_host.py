"""A host whose supernets are files that say what goes wrong; found by other processes through its entry point."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, quality
from tests.toys import ToyHost, ToySupernet, plug_in, show_other_processes

__all__ = ["HOST", "make_visible", "troubled"]


def troubled(settings: Mapping[str, Any]) -> Callable[[Architecture], dict[str, float]]:
    """Scores with ``wait_s``, ``die`` (the key of an architecture), ``fail`` (some raise, some have no loss)."""

    def score(architecture: Architecture) -> dict[str, float]:
        time.sleep(settings.get("wait_s", 0))
        if architecture.key == settings.get("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        digit = int(architecture.key, 16) % 7 if settings.get("fail") else 7
        if digit == 0:
            raise RuntimeError("out of memory")
        return {"loss": math.nan if digit == 1 else quality(architecture), "nll_loss": 0.1 * quality(architecture)}

    return score


def _opened(path: Path) -> ToySupernet:
    """Record in a second file which process opened the file for which device."""
    with (path.parent / "opened.txt").open("a") as file:
        file.write(f"{os.getpid()} {HOST.options.get('device')}\n")
    return ToySupernet(SPACE, troubled(json.loads(path.read_text())))


HOST = ToyHost(prefix=b"{", opened=_opened)


def make_visible(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the host in a folder on the path of this process and those it starts."""
    plug_in(folder, monkeypatch, "nas_ext.hosts", "toy", "tests.search.toy_host:HOST")
    show_other_processes(folder, monkeypatch)
