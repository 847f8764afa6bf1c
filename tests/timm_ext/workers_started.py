"""Several workers of one program, started as torchrun does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(count: int, *arguments: str) -> list[tuple[int, str, str]]:
    """Start workers as torchrun does; exit code, output and messages of each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    for rank in range(count):
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment |= {name: str(value) for name, value in own.items()}
        running.append(
            subprocess.Popen(
                [sys.executable, *arguments],
                env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
            )
        )  # fmt: skip
    try:
        said = [worker.communicate(timeout=240) for worker in running]
    finally:
        for worker in running:
            worker.kill()
    return [(worker.returncode, *texts) for worker, texts in zip(running, said, strict=True)]
