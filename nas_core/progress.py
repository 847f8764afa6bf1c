"""Progress of long computations: a bar on a terminal, a line every minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

FIRST_S, AGAIN_S = 5.0, 60.0  # seconds until the first line of SlowWork, and between lines

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

    def __init__(self, what: str, total: int = 0) -> None:
        self.total = total
        self._what = what
        self._began = clock()
        self._next = self._began + FIRST_S

    def advance(self, done: int, note: str = "") -> None:
        """Print the number of finished units if it is time for a line and units remain."""
        now = clock()
        if now < self._next or done >= self.total:
            return
        self._next = now + AGAIN_S
        took = now - self._began
        remaining = f", about {duration(took / done * (self.total - done))} left" if done else ""
        tqdm.write(f"{self._what}: {done} of {self.total}{note} after {duration(took)}{remaining}", file=sys.stderr)


def slow_training(what: str) -> Callable[[int, int, float], None]:
    """Return a callback ``(step, steps, loss)`` that prints the progress of a training, like :class:`SlowWork`."""
    work, last = SlowWork(what), 0

    def progress(step: int, steps: int, loss: float) -> None:
        nonlocal work, last
        if step <= last:
            work = SlowWork(what)
        last, work.total = step, steps
        work.advance(step, f" steps, loss {loss:.3g},")

    return progress


@contextmanager
def counted(what: str, total: int, unit: str, show: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Show the progress of the block. Yields a function to call with the number of newly finished units.

    Args:
        show: True: a bar; False: nothing; None: a bar on a terminal, lines like :class:`SlowWork` elsewhere.
    """
    work, done = SlowWork(what, total), 0
    with tqdm(desc=what, total=total, unit=unit, disable=None if show is None else not show) as bar:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            bar.update(count)
            if bar.disable and show is None:
                work.advance(done)

        yield advance
