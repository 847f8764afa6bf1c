"""The bar that people watch a training by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from nas_core.predictor.nn_former.place import on_host

Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""


@contextmanager
def training_bar(what: str = "training") -> Iterator[Progress]:
    """A progress that draws a bar on standard error, where that is a terminal.

    Args:
        what: the word before the bar.
    """
    with tqdm(desc=what, unit="step", disable=None) as bar:
        yield told_in(bar)


def told_in(bar: tqdm[Any]) -> Progress:
    """A progress that is shown in a bar. A training that goes on begins where it stands; each of several fits begins
    anew."""

    def progress(step: int, steps: int, loss: float) -> None:
        if bar.total is None or step <= bar.n:
            bar.reset(steps)
            bar.initial = bar.n = step - 1
        bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
        bar.update(step - bar.n)

    return progress


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
