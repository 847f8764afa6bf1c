"""Progress bar, reported losses, and checkpoints of a training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from nas_core.differences import check_same_settings
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.device import on_host

Progress = Callable[[int, int, float], None]
"""Function called with the step, the number of steps and the loss."""
EVERY = 50  # number of steps between reads of losses from an accelerator; each read waits for the device
EVERY_S = 30.0
KIND = "training"


@contextmanager
def training_bar(what: str = "training") -> Iterator[Progress]:
    """Show a progress bar if standard error is a terminal; yield the callback that advances it."""
    with tqdm(desc=what, unit="step", disable=None) as bar:

        def progress(step: int, steps: int, loss: float) -> None:
            if bar.total is None or step <= bar.n:  # the first step after a resume, or of the next fit
                bar.reset(steps)
                bar.initial = bar.n = step - 1
            bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            bar.update(step - bar.n)

        yield progress


class Losses:
    """Report of losses to a callback: after each step on the CPU, otherwise after :data:`EVERY` steps.

    Args:
        progress: callback; None: no report.
        done: number of steps before the first reported one.
    """

    def __init__(self, progress: Progress | None, steps: int, done: int = 0) -> None:
        self._progress, self._steps, self._done = progress, steps, done
        self._pending: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        if self._progress is None:
            return
        self._pending.append(loss)
        if on_host(loss.device) or len(self._pending) == EVERY:
            self.report()

    def report(self) -> None:
        """Report the losses that were not reported yet; call it at the end."""
        if self._progress is None or not self._pending:
            return
        values, self._pending = torch.stack(self._pending).tolist(), []
        for value in values:
            self._done += 1
            self._progress(self._done, self._steps, value)


def member_file(checkpoint: Path, member: int) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.{member}.safetensors")


class Checkpoint:
    """Checkpoint of a fit: one file per network, written every half minute and removed at the end.

    Args:
        settings: settings, and a hash of the data, which must be equal when a fit resumes.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self.settings = path, dict(settings)
        self.written = time.monotonic()
        self._files: set[Path] = set()

    def load(self, member: int, restore: Callable[[dict[str, Tensor]], None]) -> None:
        """Call ``restore`` with the saved state of a network, if there is one."""
        path = member_file(self.path, member)
        if not path.exists():
            return
        header, tensors = read_artifact(path, KIND)
        advice = "give another file, or remove it to start again"
        check_same_settings(f"{path} is from a fit with", header["begun"], self.settings, advice)
        restore(tensors)
        self._files.add(path)

    def save(self, member: int, state: Callable[[], Mapping[str, Tensor]], finished: bool) -> None:
        """Write the state of a network if half a minute has passed or its training has finished."""
        if time.monotonic() - self.written >= EVERY_S or finished:
            path = member_file(self.path, member)
            write_artifact(path, KIND, {"begun": self.settings}, state())
            self._files.add(path)
            self.written = time.monotonic()

    def remove(self) -> None:
        for path in self._files:
            path.unlink(missing_ok=True)
