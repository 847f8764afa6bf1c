"""How fast this machine trains at this moment, and so how long a number of updates will take.

A busy machine is slower; it must not mean less learned. So the number of updates is settled before training starts, by
what networks need to learn something and, above that, by the time there is; how long it takes is told, and told again
while it runs.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]

UNTIMED_UPDATES = 3
"""The first updates of a process are slower than all others."""
TIMED_UPDATES = 24
"""What a trial times on a machine that has nothing else to do."""
ENOUGH_SECONDS, FEWEST_TIMED = 20.0, 4
"""A slow trial ends after so many seconds, but not before it has seen so many updates: it waits for them."""
FASTER_BY = 1.25
"""More threads are taken if they train so many times as fast; they lose more when the machine becomes busier."""
START_SECONDS = 10.0
"""Time that ``fairseq-train`` takes until its first update."""
VALIDATION_SHARE = 0.08
RECENT_SECONDS = 90.0
"""The pace of a running training is that of the last so many seconds."""


def updates_in(line: str) -> int | None:
    """The number of updates a log line of ``fairseq-train`` tells of, None for other lines."""
    _, _, content = line.partition(" | train_inner | ")
    return int(json.loads(content)["num_updates"]) if content.startswith("{") else None


class Trial:
    """Times a training by its log lines; called with each, it says when it has seen enough."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._points: list[tuple[int, float]] = []

    def __call__(self, line: str) -> bool:
        updates = updates_in(line)
        if updates is not None and updates >= UNTIMED_UPDATES:
            self._points.append((updates, self._clock()))
        return self._updates >= TIMED_UPDATES or (self._updates >= FEWEST_TIMED and self._seconds >= ENOUGH_SECONDS)

    @property
    def seconds_per_update(self) -> float | None:
        """None if the training ended before it could be timed."""
        return self._seconds / self._updates if self._updates and self._seconds else None

    @property
    def _updates(self) -> int:
        return self._points[-1][0] - self._points[0][0] if self._points else 0

    @property
    def _seconds(self) -> float:
        return self._points[-1][1] - self._points[0][1] if self._points else 0.0


@dataclass(frozen=True)
class Pace:
    """What trials have found."""

    seconds_per_update: float
    threads: int

    def updates_in(self, minutes: float) -> int:
        """How many updates fit into the minutes, start and validation included."""
        return max(1, int((minutes * 60 - START_SECONDS) / (self.seconds_per_update * (1 + VALIDATION_SHARE))))

    def seconds_of(self, updates: int) -> float:
        """How long so many updates take, start and validation included."""
        return START_SECONDS + updates * self.seconds_per_update * (1 + VALIDATION_SHARE)


def fastest(paces: dict[int, float]) -> Pace:
    """Choose from seconds per update the smallest number of threads that is not clearly slower.

    Two threads that wait for each other on a busy machine can be slower than one.
    """
    best = min(paces.values())
    threads = min(threads for threads, seconds in paces.items() if seconds <= best * FASTER_BY)
    return Pace(paces[threads], threads)


class Remaining:
    """How long a running training still takes, by its recent pace."""

    def __init__(self, updates: int, clock: Clock = time.monotonic) -> None:
        self._updates = updates
        self._clock = clock
        self._points: deque[tuple[int, float]] = deque()

    def __call__(self, done: int) -> float | None:
        """Seconds, after ``done`` updates; None until two counts have been seen."""
        now = self._clock()
        self._points.append((done, now))
        while len(self._points) > 2 and now - self._points[1][1] >= RECENT_SECONDS:
            self._points.popleft()
        first, start = self._points[0]
        return (now - start) / (done - first) * (self._updates - done) if done > first else None


def processors() -> int:
    """How many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def busy() -> str:
    """A clause for people if other programs want this machine's processors, empty if they do not."""
    load, count = os.getloadavg()[0], processors()
    return f"{load:.1f} programs want its {count} processor(s)" if load > 0.8 * count else ""


def spoken(seconds: float) -> str:
    """A length of time as people say it: ``about 40 seconds``, ``about 7 minutes``, ``about 3 hours``."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    return f"about {round(seconds / 60)} minutes" if seconds < 9000 else f"about {round(seconds / 3600)} hours"
