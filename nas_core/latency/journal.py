"""Journals of measurements: a header with settings, machine and reference, then one line per measurement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from nas_core.differences import check_same_settings
from nas_core.errors import DataError
from nas_core.files.journal import read_jsonl
from nas_core.latency.protocol import checked_settings


class Journal(Protocol):
    """File or folder of results written as they come; resuming checks that settings and machine are the same."""

    path: Path
    settings: dict[str, Any]
    machine: dict[str, Any]


def read_journal(
    path: Path, format_name: str, version: int, content: str, command: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the validated header, and the other lines; ``content`` and ``command`` are for messages.

    Raises:
        DataError: the journal is missing or damaged.
    """
    lines = read_jsonl(path)
    if not lines:
        raise DataError(f"{path} is empty; '{command}' fills it")
    header = lines[0]
    if header.get("format") != format_name:
        raise DataError(f"{path} holds no {content} (format {header.get('format')!r}, expected {format_name!r})")
    if not isinstance(header.get("version"), int) or header["version"] > version:
        raise DataError(f"{path} has version {header.get('version')!r}, this release reads up to {version}; upgrade")
    try:
        settings, machine = checked_settings(header["settings"]), dict(header["machine"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: the header lacks or garbles {error}; restore the file or measure anew") from None
    return {**header, "settings": settings, "machine": machine}, lines[1:]


def check_conditions(journal: Journal, settings: Mapping[str, Any], machine: Mapping[str, Any], instead: str) -> None:
    for part, old, new in (("setting", journal.settings, settings), ("machine", journal.machine, machine)):
        advice = f"go on with the former one, or give another {instead}"
        check_same_settings(f"{journal.path} was begun with {part}", old, new, advice)
