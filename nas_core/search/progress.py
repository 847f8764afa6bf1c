"""How far a search is and how long it will take: a bar, what is said after the first evaluations, and a log file."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from nas_core.errors import NasExtError
from nas_core.files import check_replaceable, os_errors
from nas_core.progress import duration

LOG_EVERY_S = 60.0
"""Seconds between lines of the log."""
FIRST, FIRST_S = 5, 20.0
"""The time that a search takes is said after so many evaluations, or after so many seconds and one."""
SAY_AGAIN = 1.5
"""It is said again when evaluations take so many times as long as was said."""

clock = time.monotonic


class Progress:
    """Counts what a search is told, and times its rounds; results that were known cost nothing and are left out of all
    times.

    A round is a generation of the strategy: what it proposes, the evaluations, and what it learns from them. The time
    left follows the last whole round, as a strategy may spend more time on its own work than on evaluations; before the
    first one ends, it follows the evaluations alone, and says so.

    Nothing is logged before the first evaluation: a finished run that is read again leaves its log as it is. Without a
    terminal the lines of the log are printed as well.

    Args:
        log: the file, which is appended to. total: evaluations at most. together: how many are evaluated at once.
        show: whether to print anything. kept: whether the search can be continued.
    """

    def __init__(self, log: Path, total: int, together: int, show: bool, kept: bool = True) -> None:
        self._log, self._total, self._together, self._show = log, total, together, show
        self._how = "Ctrl-C stops, the same command continues" if kept else "Ctrl-C ends it, without a result"
        self._told = self._evaluated = 0
        self._began = self._logged = 0.0
        self._seconds = 0.0  # that an evaluation takes, of several at once its share, and its share of the own work
        self._round_s = 0.0  # the same in the last whole round
        self._mark, self._evaluated_before = 0.0, 0  # when the round began, and evaluations before it
        self._said_s = 0.0  # the seconds that were said
        self._where, self._best = "", ""
        layout = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{postfix}"
        self._bar: tqdm[Any] = tqdm(
            total=total, desc="search", disable=None if show else True, bar_format=layout, dynamic_ncols=True
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.close()
        if self._began and kind is None:
            self._line(f"ended: {self._evaluated} evaluated in {duration(clock() - self._began)}")
        elif self._began and kind is not None:
            with contextlib.suppress(NasExtError):  # the disk may be what stopped it
                self._write(f"stopped ({kind.__name__}), {self._evaluated} evaluated; the same command continues")

    def searching(self, name: str) -> None:
        """The search that is driven now."""
        self._where = name
        self._bar.set_description(name)

    def begin(self) -> None:
        """Something is about to be evaluated; the clock starts with the first."""
        self._settle()
        if not self._began:
            self._began = self._logged = self._mark = clock()
            known = f", {self._told} results were known" if self._told else ""
            self._line(f"at most {self._total - self._told:,} evaluations to come{known}")
        if self._said_s and self._round_s > SAY_AGAIN * self._said_s:
            self._said_s = self._round_s
            self._say(f"{self._each()} with the search's own work: {self._left()}")

    def evaluated(self) -> None:
        """One evaluation has ended; the first ones tell how long a search takes."""
        self._evaluated += 1
        if self._evaluated % self._together == 0:
            self._settle()
        if not self._said_s and self._seconds and (self._evaluated >= FIRST or clock() - self._began > FIRST_S):
            self._said_s = self._seconds
            more = "" if self._round_s else ", and the search's own work"
            self._say(f"{self._each()}: {self._left()}{more}; {self._how}")

    def round_ended(self) -> None:
        """The strategy has learned from a whole generation and proposed the next one."""
        count = self._evaluated - self._evaluated_before
        if count:
            self._seconds = self._round_s = (clock() - self._mark) / count
            self._mark, self._evaluated_before = clock(), self._evaluated

    def told(self) -> None:
        """The search has one result more, evaluated or known."""
        self._told += 1
        self._bar.update()
        if self._seconds:
            self._bar.set_postfix_str(", ".join(filter(None, (self._best, self._each(), self._left()))), refresh=False)
        if self._began and clock() - self._logged >= LOG_EVERY_S:
            self._logged = clock()
            self._line(self._state())

    def best(self, metric: str, value: float) -> None:
        """The least value so far in the search that is driven."""
        self._best = f"best {metric} {value:.4g}"

    def drop(self, count: int) -> None:
        """So many evaluations will not be needed: a search has ended below its budget."""
        self._total -= count
        self._bar.total = self._total
        self._bar.refresh()

    def _state(self) -> str:
        counts = f"{self._told} of at most {self._total:,} known, {self._evaluated} of them evaluated now"
        times = (self._each(), self._left()) if self._seconds else ()
        return ", ".join(filter(None, (f"{self._where or 'search'}: {counts}", self._best, *times)))

    def _settle(self) -> None:
        """All that were evaluated together are done: so long each of them took in this round."""
        count, took = self._evaluated - self._evaluated_before, clock() - self._mark
        if self._round_s:
            self._seconds = max(self._round_s, took / max(count, FIRST))  # the machine may have become slower
        elif count:
            self._seconds = took / count

    def _each(self) -> str:
        return (f"{self._seconds:.2g} s" if self._seconds < 10 else duration(self._seconds)) + " each"

    def _left(self) -> str:
        count = self._total - max(self._told, self._evaluated)
        return f"about {duration(self._seconds * count)} for at most {count:,} more"

    def _say(self, text: str) -> None:
        """To the log, and to people whether or not there is a terminal."""
        self._write(text)
        if self._show:
            self._bar.write(text, file=sys.stderr)

    def _line(self, text: str) -> None:
        """To the log, and to people who see no bar."""
        self._write(text)
        if self._show and self._bar.disable:
            print(text, file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        check_replaceable(self._log)
        with os_errors("write", self._log), open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{now} {text}\n")
