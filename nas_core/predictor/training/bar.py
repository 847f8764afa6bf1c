"""The bar that people watch a training by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

__all__ = ["Progress", "told_in", "training_bar"]

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
