"""Journals: JSON Lines files that stay readable if a process is killed while it writes."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.files.reading import parse_json, read_bytes
from nas_core.files.writing import check_replaceable, os_errors, plain_json

_log = logging.getLogger(__name__)


def append_jsonl(path: str | Path, record: Mapping[str, Any]) -> None:
    """Append a record to a JSON Lines file and flush it to disk. A missing file is created.

    An incomplete last line is removed first. Only one process may write at a time.

    Raises:
        DataError: the file does not contain JSON Lines. It stays unchanged.
        NasExtError: the file cannot be written.
    """
    line = json.dumps(record, ensure_ascii=False, default=plain_json).encode("utf-8") + b"\n"
    journal = Path(path)
    check_replaceable(journal)
    with os_errors("write", path):
        journal.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(journal, os.O_RDWR | os.O_CREAT, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            end = _mend(file.fileno(), path)
            try:
                remaining = memoryview(line)
                file.seek(end)
                while remaining:
                    remaining = remaining[file.write(remaining) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise


def read_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """Return the records of a JSON Lines file. An incomplete last line is skipped with a warning.

    Raises:
        DataError: the file is missing, or a line before the last is not a JSON object.
    """
    lines = read_bytes(path).split(b"\n")
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except ValueError as error:
            if number == len(lines) and line.lstrip().startswith(b"{"):
                _log.warning("%s: skipped line %d, which is incomplete", path, number)
                break
            raise DataError(
                f"{path}, line {number} is not a JSON object ({error}): the file is damaged or not JSON Lines; restore "
                "it, or move it away to start again"
            ) from error
    return records


def _record(line: bytes) -> dict[str, Any]:
    value = parse_json(line)
    if not isinstance(value, dict):
        raise ValueError(f"got {type(value).__name__}")
    return value


def _mend(descriptor: int, path: str | Path) -> int:
    """Remove an incomplete last line, add a missing line break, and return the length in bytes."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    tail, offset = b"", size
    while offset > 0 and b"\n" not in tail:
        step = min(65536, offset)
        offset -= step
        tail = os.pread(descriptor, step, offset) + tail
    tail = tail.rpartition(b"\n")[2]
    try:
        _record(tail)
    except ValueError as error:
        if not tail.lstrip().startswith(b"{"):
            raise DataError(
                f"{path} does not end with a JSON object: it is damaged or not JSON Lines, and stays unchanged; give "
                "another file name"
            ) from error
        _log.warning("%s: removed the last line, which was incomplete", path)
        os.ftruncate(descriptor, size - len(tail))
        return size - len(tail)
    os.pwrite(descriptor, b"\n", size)
    return size + 1
