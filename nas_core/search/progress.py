"""Progress of a search: progress bar, remaining time and log file."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nas_core.errors import NasExtError
from nas_core.files.writing import check_replaceable, os_errors
from nas_core.progress import duration

LOG_EVERY_S = 60.0
"""Seconds between log lines."""
FIRST, FIRST_S = 5, 20.0
"""Number of evaluations, or seconds after the first evaluation, before the time estimate is reported."""

clock = time.monotonic


class Progress:
    """Progress bar, remaining time and log file of a search.

    The remaining time follows from the mean time of the evaluations so far. Without a terminal, log lines are printed.

    Args:
        total: largest number of evaluations.
        workers: number of simultaneous evaluations.
        show: print to stderr.
        kept: True if the search can be resumed.
    """

    def __init__(self, log: Path, total: int, workers: int, show: bool, kept: bool = True) -> None:
        self._log, self._total, self._workers, self._show = log, total, workers, show
        self._how = "Ctrl-C stops, the same command continues" if kept else "Ctrl-C ends it, without a result"
        self._results = self._evaluated = 0
        self._began = self._logged = 0.0
        self._reported = False
        self._where, self._best = "", ""
        layout = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}"
        self._bar: tqdm[Any] = tqdm(
            total=total, desc="search", disable=None if show else True, bar_format=layout, dynamic_ncols=True
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._bar.close()
        if self._began and kind is None:
            self._line(f"ended: {self._evaluated} evaluated in {duration(clock() - self._began)}")
        elif self._began and kind is not None:
            with contextlib.suppress(NasExtError):  # a full disk may be the cause
                self._write(f"stopped ({kind.__name__}), {self._evaluated} evaluated; the same command continues")

    def searching(self, name: str) -> None:
        self._where = name
        self._bar.set_description(name)

    def begin(self) -> None:
        """Start the clock in the first call."""
        if not self._began:
            self._began = self._logged = clock()
            replayed = f", {self._results} results were known" if self._results else ""
            self._line(f"at most {self._total - self._results:,} evaluations to come{replayed}")

    def evaluated(self) -> None:
        self._evaluated += 1
        enough = self._evaluated >= FIRST or clock() - self._began > FIRST_S
        if enough and not self._reported and (left := self._left()):
            self._reported = True
            text = f"{left}; {self._how}"
            self._write(text)
            if self._show:
                self._bar.write(text, file=sys.stderr)

    def advance(self) -> None:
        self._results += 1
        self._bar.update()
        text = ", ".join(filter(None, (self._best, self._left())))
        self._bar.set_postfix_str(text, refresh=False)
        if self._began and clock() - self._logged >= LOG_EVERY_S:
            self._logged = clock()
            counts = f"{self._results} of at most {self._total:,} known, {self._evaluated} of them evaluated now"
            self._line(", ".join(filter(None, (f"{self._where or 'search'}: {counts}", text))))

    def best(self, metric: str, value: float) -> None:
        self._best = f"best {metric} {value:.4g}"

    def drop(self, count: int) -> None:
        """Reduce the total by evaluations that were not needed."""
        self._total -= count
        self._bar.total = self._total
        self._bar.refresh()

    def _left(self) -> str:
        if self._evaluated < self._workers:  # simultaneous evaluations end at about the same time
            return ""
        seconds = (clock() - self._began) / self._evaluated
        each = f"{seconds:.2g} s" if seconds < 10 else duration(seconds)
        count = self._total - max(self._results, self._evaluated)
        return f"{each} each so far: about {duration(seconds * count)} for at most {count:,} more"

    def _line(self, text: str) -> None:
        self._write(text)
        if self._show and self._bar.disable:
            print(text, file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        check_replaceable(self._log)
        with os_errors("write", self._log), open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{now} {text}\n")
