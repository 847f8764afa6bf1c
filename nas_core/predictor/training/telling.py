"""The losses of a training as they are told to whoever watches it."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.predictor.nn_former.place import on_host
from nas_core.predictor.training.bar import Progress

__all__ = ["EVERY", "Losses"]

EVERY = 50
"""Steps of an accelerator whose losses are read at once: reading one waits for all that was asked of the device."""


class Losses:
    """Calls a progress with each step, the number of steps and the loss: on the CPU at once, else :data:`EVERY` steps
    together.

    Args:
        progress: None: nobody watches, and no loss is kept.
        steps: of the whole fit.
        done: steps before the first that will be told.
    """

    def __init__(self, progress: Progress | None, steps: int, done: int = 0) -> None:
        self._progress, self._steps, self._done = progress, steps, done
        self._untold: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        """Take the loss of the next step."""
        if self._progress is None:
            return
        self._untold.append(loss)
        if on_host(loss.device) or len(self._untold) == EVERY:
            self.tell()

    def tell(self) -> None:
        """Tell what was not told yet; to be called at the end."""
        if self._progress is None or not self._untold:
            return
        values, self._untold = torch.stack(self._untold).tolist(), []
        for value in values:
            self._done += 1
            self._progress(self._done, self._steps, value)
