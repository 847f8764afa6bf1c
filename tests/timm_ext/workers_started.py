"""Several workers of one program, started as torchrun does."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from pathlib import Path

from tests.warm import python as warm_python

__all__ = ["start"]

ROOT = Path(__file__).parents[2]
LONGEST_S, LEFT_S = 240.0, 30.0
"""Seconds that all may take, and that the others may go on when one has failed."""


def start(count: int, *arguments: str) -> list[tuple[int, str, str]]:
    """Run Python with these arguments in each; exit code (below 0: it was ended), output and messages of each."""
    port, running = random.randrange(20_000, 32_000), []  # below the ports of outgoing connections
    python, shared = warm_python()
    with tempfile.TemporaryDirectory() as name:
        for rank in range(count):
            variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
            environment = {
                **shared,
                "MASTER_ADDR": "127.0.0.1",
                **{key: str(value) for key, value in variables.items()},
            }
            out, err = (open(Path(name) / f"{rank}.{kind}", "w") for kind in ("out", "err"))  # noqa: SIM115
            command = [python, *arguments]
            running.append(subprocess.Popen(command, env=environment, text=True, stdout=out, stderr=err, cwd=ROOT))
            out.close()
            err.close()
        _wait(running)
        outputs = [[(Path(name) / f"{rank}.{kind}").read_text() for kind in ("out", "err")] for rank in range(count)]
    return [(worker.returncode, *texts) for worker, texts in zip(running, outputs, strict=True)]  # type: ignore[misc]


def _wait(running: list[subprocess.Popen[str]]) -> None:
    until = time.monotonic() + LONGEST_S
    try:
        while any(worker.poll() is None for worker in running) and time.monotonic() < until:
            if any(worker.returncode for worker in running):
                until = min(until, time.monotonic() + LEFT_S)
            time.sleep(0.1)
    finally:
        for worker in running:
            worker.kill()
            worker.wait()
