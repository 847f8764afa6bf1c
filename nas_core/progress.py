"""Progress of long computations: a bar on a terminal, a line every minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

FIRST_LINE_S, INTERVAL_S = 5.0, 60.0  # seconds until the first line of SlowWork, and between lines

clock = time.monotonic


def duration(seconds: float) -> str:
    """Return a rounded duration: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class SlowWork:
    """Progress lines on standard error: one after 5 s, then one every minute.

    Args:
        total: number of units of work.
    """

    def __init__(self, description: str, total: int = 0) -> None:
        self.total = total
        self._description = description
        self._start_time = clock()
        self._next = self._start_time + FIRST_LINE_S

    def advance(self, finished: int, note: str = "") -> None:
        """Print the number of finished units if it is time for a line and units remain."""
        now = clock()
        if now < self._next or finished >= self.total:
            return
        self._next = now + INTERVAL_S
        elapsed = now - self._start_time
        remaining = f", about {duration(elapsed / finished * (self.total - finished))} left" if finished else ""
        tqdm.write(
            f"{self._description}: {finished} of {self.total}{note} after {duration(elapsed)}{remaining}",
            file=sys.stderr,
        )


def slow_training(description: str) -> Callable[[int, int, float], None]:
    """Return a callback ``(step, steps, loss)`` that prints the progress of a training, like :class:`SlowWork`."""
    work, last = SlowWork(description), 0

    def progress(step: int, steps: int, loss: float) -> None:
        nonlocal work, last
        if step <= last:
            work = SlowWork(description)
        last, work.total = step, steps
        work.advance(step, f" steps, loss {loss:.3g},")

    return progress


@contextmanager
def progress_bar(description: str, total: int, unit: str, show: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Show the progress of the block. Yields a function to call with the number of newly finished units.

    Args:
        show: True: a bar; False: nothing; None: a bar on a terminal, lines like :class:`SlowWork` elsewhere.
    """
    work, finished = SlowWork(description, total), 0
    with tqdm(desc=description, total=total, unit=unit, disable=None if show is None else not show) as bar:

        def advance(count: int) -> None:
            nonlocal finished
            finished += count
            bar.update(count)
            if bar.disable and show is None:
                work.advance(finished)

        yield advance
