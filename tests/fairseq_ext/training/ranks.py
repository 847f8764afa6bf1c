"""Programs of several workers that train together, run to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tests.fairseq_ext.running import ROOT, free_port
from tests.warm import python

__all__ = ["results_of", "two_workers"]


def results_of(folder: Path, commands: Sequence[Sequence[object]]) -> list[Any]:
    """What each worker left in ``RANK.pt`` of the folder; a command is a module and its arguments."""
    workers, (program, environment) = [], python()
    environment["CUDA_VISIBLE_DEVICES"] = ""
    for rank, command in enumerate(commands):
        with (folder / f"{rank}.log").open("w") as log:
            words = [program, "-m", *map(str, command)]
            workers.append(subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT, env=environment))
    try:
        codes = [worker.wait(250) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    logs = "\n".join((folder / f"{rank}.log").read_text()[-2000:] for rank in range(len(commands)))
    assert set(codes) == {0}, logs
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(len(commands))]


def two_workers(folder: Path, arguments: Sequence[object]) -> list[Any]:
    """What each of two processes of fairseq-train drew and ended with."""
    port = free_port()
    commands = []
    for rank in range(2):
        options = ["--distributed-world-size", 2, "--distributed-rank", rank, "--distributed-no-spawn"]
        options += ["--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-backend", "gloo"]
        options += ["--ddp-backend", "no_c10d"]
        commands.append(["tests.fairseq_ext.training.rank", folder / f"{rank}.pt", *arguments, *options])
    return results_of(folder, commands)
