"""Results as they come, kept in a file beside the work, so that nothing is computed twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import read_json


class OutOfTimeError(Exception):
    """The time of a call is over."""


class Task(Protocol):
    @property
    def key(self) -> dict[str, Any]:
        """What its result begins with, and by which it is known."""


def is_of(record: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Whether a record is the result of the task with that key. Records from before there were settings in the key are
    of any settings."""
    return all(record[name] == value if name in record else name == "settings" for name, value in key.items())


def stopping(until: float, what: str) -> Callable[[int, int, float], None]:
    """A progress that ends a fit when the monotonic clock shows ``until``, at once if it does already.

    Raises:
        OutOfTimeError: it does; of the progress too.
    """

    def progress(step: int, steps: int, loss: float) -> None:
        if time.monotonic() > until:
            raise OutOfTimeError(f"{what}: step {step} of {steps}")

    if time.monotonic() > until:
        raise OutOfTimeError(f"{what}: not begun")
    return progress


def settings_hash(settings: Mapping[str, Any]) -> str:
    """A short name of settings, equal for equal ones."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def merged(path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """These rows and those of a result that was written before, by the fields with these names; a new row replaces the
    old one of its names."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    before = read_json(path)["rows"] if path.exists() else []
    found = {key(row): row for row in [*before, *rows]}
    return [found[each] for each in sorted(found)]


def results(
    tasks: Sequence[Task],
    run: Callable[[Any], dict[str, Any]],
    work: Path,
    jobs: int,
    kept: Callable[[list[dict[str, Any]]], None] | None = None,
) -> list[dict[str, Any]]:
    """All results in the file ``work``, with those of these tasks.

    Args:
        jobs: how many run at a time, each in a process; 0: one by one in this process.
        kept: called with all results whenever there is a new one.
    """
    records = read_jsonl(work) if work.exists() else []
    waiting = [task for task in tasks if not any(is_of(record, task.key) for record in records)]

    def keep(record: dict[str, Any]) -> None:
        append_jsonl(work, record)
        records.append(record)
        print(json.dumps(record), flush=True)
        if kept is not None:
            kept(records)

    if not jobs:
        for task in waiting:
            keep(run(task))
        return records
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, task) for task in waiting]):
            keep(future.result())
    return records
