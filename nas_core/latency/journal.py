"""JSON Lines files of measurements: a header with settings and machine, then one line per measurement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.differences import check_same_settings
from nas_core.errors import DataError
from nas_core.files.journal import read_jsonl


def read_journal(path: Path, format_name: str, version: int, content: str, command: str) -> list[dict[str, Any]]:
    """Return the header and the other lines of a file of measurements.

    Args:
        content: expected content, for error messages.
        command: command that adds measurements, for error messages.
    """
    lines = read_jsonl(path)
    if not lines:
        raise DataError(f"{path} is empty; run '{command}' to add measurements")
    kind = lines[0].get("format"), lines[0].get("version")
    if kind != (format_name, version):
        raise DataError(f"{path} has format {kind[0]!r} {kind[1]!r}; expected {content}, {format_name!r} {version}")
    return lines


def check_conditions(
    path: Path,
    former: tuple[Mapping[str, Any], Mapping[str, Any]],
    current: tuple[Mapping[str, Any], Mapping[str, Any]],
    alternative: str,
) -> None:
    """Raise a ConfigError if settings or machine differ from those of a file.

    Args:
        former: settings and machine of the file.
        current: current settings and machine.
        alternative: what else to give, for the message, such as "file".
    """
    for kind, old, new in zip(("setting", "machine"), former, current, strict=True):
        advice = f"use the same {kind}, or give another {alternative}"
        check_same_settings(f"{path} was created with {kind}", old, new, advice)
