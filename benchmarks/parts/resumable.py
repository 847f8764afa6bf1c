"""Results that are stored one by one, so that an interrupted benchmark resumes."""

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
    """The time limit of a call is reached."""


class Task(Protocol):
    @property
    def key(self) -> dict[str, Any]:
        """Identifying fields of the result."""


def is_result_of(record: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Return True if a record is the result of a task; a record without ``settings`` matches all settings."""
    return all(record[name] == value if name in record else name == "settings" for name, value in key.items())


def time_limit_callback(until: float, name: str) -> Callable[[int, int, float], None]:
    """Return a progress callback that raises OutOfTimeError when the monotonic clock passes ``until``.

    Raises:
        OutOfTimeError: it has passed already.
    """

    def progress(step: int, steps: int, loss: float) -> None:
        if time.monotonic() > until:
            raise OutOfTimeError(f"{name} reached the time limit at step {step} of {steps}")

    if time.monotonic() > until:
        raise OutOfTimeError(f"{name} was not started before the time limit")
    return progress


def settings_hash(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def merge_rows(path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Add rows to those of an earlier result; rows with equal values of ``names`` are replaced."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    before = read_json(path)["rows"] if path.exists() else []
    by_key = {key(row): row for row in [*before, *rows]}
    return [row for _, row in sorted(by_key.items(), key=lambda item: item[0])]


def results(
    tasks: Sequence[Task],
    run: Callable[[Any], dict[str, Any]],
    work: Path,
    jobs: int,
    report: Callable[[list[dict[str, Any]]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run the tasks without a result in the file ``work``; return all results of the file.

    Args:
        jobs: number of processes; 0 runs in this process.
        report: function called with all results after each new one.
    """
    records = read_jsonl(work) if work.exists() else []
    pending = [task for task in tasks if not any(is_result_of(record, task.key) for record in records)]

    def store(record: dict[str, Any]) -> None:
        append_jsonl(work, record)
        records.append(record)
        print(json.dumps(record), flush=True)
        if report is not None:
            report(records)

    if not jobs:
        for task in pending:
            store(run(task))
        return records
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(run, task) for task in pending]):
                store(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return records


def measure_rows(
    out: Path | None,
    keys: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    measure: Callable[[int], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Measure a row per key; a second call resumes from a file next to ``out``.

    Args:
        out: file of the result; None stores nothing.
        measure: function of a key's index that returns further fields of its row.
    """
    file = None if out is None else out.with_suffix(".part.jsonl")
    stored = read_jsonl(file) if file is not None and file.exists() else []
    rows = []
    for index, key in enumerate(keys):
        task = {**key, "settings": settings_hash(settings)}
        record = next((record for record in stored if is_result_of(record, task)), None)
        if record is None:
            record = {**task, **measure(index)}
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                append_jsonl(file, record)
        rows.append({name: value for name, value in record.items() if name != "settings"})
        print(json.dumps(rows[-1]), flush=True)
    if file is not None:
        file.unlink(missing_ok=True)
    return rows
