"""What runs in the workers of tests; it imports little, as each of them is a fresh interpreter."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nas_core.errors import ConfigError


def lose_the_device() -> None:
    """End as CUDA does at an illegal access: from then on every call raises that error, in this process alone."""

    def synchronize() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=synchronize)
    sys.modules["torch"] = SimpleNamespace(cuda=cuda)  # type: ignore[assignment]
    synchronize()


def opened(folder: str, number: int, trouble: str = "") -> Callable[[Any], dict[str, Any]]:
    """What runs in a worker: it notes its process, and does to items what they say."""
    with open(Path(folder) / "opened.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    print("hosts may print")
    if trouble == "refused":
        raise ConfigError("the checkpoint is damaged; restore it")
    if trouble == "broken":
        raise RuntimeError("no memory")

    def each(item: Any) -> dict[str, Any]:
        print("so may their work")
        if item == "raise":
            raise ValueError("on two\nlines")
        if item == "die" or (item == "die once" and not (Path(folder) / "died").exists()):
            (Path(folder) / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "lose the device" and not (Path(folder) / "lost").exists():
            (Path(folder) / "lost").touch()
            lose_the_device()
        time.sleep(item if isinstance(item, float) else 0)
        return {"item": item, "worker": number, "threads": os.environ["OMP_NUM_THREADS"], "nan": float("nan")}

    return each
