"""Results as they come, kept in a file beside the work, so that nothing is computed twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from nas_core.files import append_jsonl, read_jsonl


class Task(Protocol):
    @property
    def key(self) -> dict[str, Any]:
        """What its result begins with, and by which it is known."""


def results(tasks: Sequence[Task], run: Callable[[Any], dict[str, Any]], work: Path, jobs: int) -> list[dict[str, Any]]:
    """All results in the file ``work``, with those of these tasks; ``jobs`` run at a time, each in a process."""
    records = read_jsonl(work) if work.exists() else []
    waiting = [task for task in tasks if not any(record.items() >= task.key.items() for record in records)]
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, task) for task in waiting]):
            record = future.result()
            append_jsonl(work, record)
            records.append(record)
            print(json.dumps(record), flush=True)
    return records
