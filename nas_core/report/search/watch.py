"""A page that is written anew while its search runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from nas_core.errors import ConfigError, DataError
from nas_core.locks import held
from nas_core.report.search.progress import LONGEST_S, progress_of
from nas_core.report.search.report import write_report
from nas_core.report.search.run import read_run

__all__ = ["watch_report"]

SHARE = 4
"""Between two pages at least so many times as long as writing one took: the search needs its processor itself."""


def watch_report(
    folder: str | Path,
    train_log: str | Path | None = None,
    every_s: float = 10.0,
    tell: Callable[[str], None] = print,
    sleep: Callable[[float], None] | None = None,
) -> Path:
    """Write the page of a search whenever there is something new, until the search has ended or stopped; returns the
    page's path. A search that another program drives may run for ever, and so may this.

    Raises:
        ConfigError: ``every_s`` is not above 0, or more than a day. DataError: the folder is missing, or vanishes;
            others as of :func:`~nas_core.report.write_report`.
    """
    folder = Path(folder)
    if not 0 < every_s <= LONGEST_S:
        raise ConfigError(
            f"a page cannot be written every {every_s:g} seconds; give a number above 0, at most {LONGEST_S}"
        )
    sleep = sleep or time.sleep
    seen: object = None
    free_at = 0.0
    while True:
        if (there := _files(folder)) is None:
            if not held(folder / "journal.lock"):
                read_run(folder)  # says what is missing
            sleep(every_s)
            continue
        progress = progress_of(read_run(folder))
        over = progress.state in ("ended", "stopped")
        if (there, over) != seen and (over or time.monotonic() >= free_at):
            began = time.monotonic()
            path = write_report(folder, train_log, every_s)
            free_at = time.monotonic() + SHARE * (time.monotonic() - began)
            seen = (there, over)
            tell(f"wrote {path}: {progress.state}, {progress.counted}")
        if over:
            return folder / "report.html"
        sleep(every_s)


def _files(folder: Path) -> tuple[float, ...] | None:
    """Times and sizes: what changes with every evaluation and at the end; None before the first evaluation.

    Raises:
        DataError: the folder is missing.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: expected the --out folder of 'nas-ext search'")
    files = [folder / "journal.jsonl", folder / "finalists.json"]
    found = [file.stat() if file.exists() else None for file in files]
    if found[0] is None or not found[0].st_size:
        return None
    return tuple(part for one in found if one is not None for part in (one.st_mtime, float(one.st_size)))
