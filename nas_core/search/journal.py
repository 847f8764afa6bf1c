"""Settings file and evaluation journal of a search."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError, DataError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import read_yaml
from nas_core.files.writing import write_atomic
from nas_core.locks import file_lock
from nas_core.space import Architecture

FORMAT = "nas-ext/search"
VERSION = 1


def plain_metrics(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Return metrics as numbers, sorted by name; None for values that are not finite numbers."""
    plain: dict[str, float | None] = {}
    for name in sorted(metrics):
        try:
            value = float(metrics[name])
        except (TypeError, ValueError):
            value = math.nan
        plain[str(name)] = value if math.isfinite(value) else None
    return plain


def settle_config(path: Path, settings: Mapping[str, Any], notes: Mapping[str, Any]) -> bool:
    """Write the settings of a new run to a YAML file, or check that they equal those in the file; return True if it
    existed.

    Args:
        notes: versions and paths, not compared.

    Raises:
        ConfigError: the file has other settings or is damaged.
    """
    if not path.exists():
        content = {"format": FORMAT, "version": VERSION, "settings": dict(settings), "notes": dict(notes)}
        write_atomic(path, yaml.safe_dump(content, sort_keys=False))
        return False
    advice = "give the same settings to continue it, or another folder"
    try:
        before = read_yaml(path)
    except DataError as error:
        raise ConfigError(f"{error}; give another folder for the run") from None
    if not isinstance(before, dict) or before.get("format") != FORMAT or not isinstance(before.get("settings"), dict):
        raise ConfigError(f"{path} was not written by a search; give another folder for the run")
    old, new = (sorted(map(str, content.get("searches") or {})) for content in (before["settings"], settings))
    if old != new:
        before_names, names = (", ".join(map(repr, group)) or "no search" for group in (old, new))
        raise ConfigError(f"{path.parent} contains the searches {before_names}, expected {names}; {advice}")
    check_same_settings(f"{path.parent} holds a search with", before["settings"], settings, advice)
    return True


class Journal:
    """Journal of a search: one JSON line per evaluation.

    A resumed search starts anew and reads results from the journal first. The context manager locks the run folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replayed = 0
        self.written = 0
        self._records: list[dict[str, Any]] = []
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> Journal:
        folder = self.path.parent
        self._lock.enter_context(
            file_lock(self.path.with_suffix(".lock"), f"is searching in {folder}", "give another folder")
        )
        try:
            self._records = read_jsonl(self.path) if self.path.exists() else []
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    @property
    def replaying(self) -> bool:
        """True while recorded evaluations remain to be read."""
        return self.replayed < len(self._records)

    def require_replayed(self) -> None:
        if self.replaying:
            record = self._records[self.replayed]
            raise DataError(
                f"{self.path}, line {self.replayed + 1} is an evaluation of {record.get('key')}, which this search does"
                " not propose; the journal was edited or comes from another version; give another folder for a new"
                " search"
            )

    def replay(self, search: str, architecture: Architecture) -> dict[str, float | None] | None:
        """Return the next recorded metrics; None at the end of the journal.

        Raises:
            DataError: the next record is damaged or of another search or architecture.
        """
        if self.replayed == len(self._records):
            return None
        record = self._records[self.replayed]
        if (record.get("search"), record.get("genes")) != (search, architecture.to_dict()):
            raise DataError(
                f"{self.path}, line {self.replayed + 1} is the evaluation of {record.get('key')} for search"
                f" {record.get('search')!r}, but the next architecture is {architecture.key} for search {search!r}; the"
                " journal was edited or comes from another version; give another folder for a new search"
            )
        if not isinstance(record.get("metrics"), dict):
            raise DataError(
                f"{self.path}, line {self.replayed + 1} has no metrics; give another folder for a new search"
            )
        self.replayed += 1
        return plain_metrics(record["metrics"])

    def append(
        self, search: str, architecture: Architecture, metrics: Mapping[str, float | None], error: str | None = None
    ) -> None:
        """Append an evaluation, without times."""
        record: dict[str, Any] = {
            "index": self.replayed + self.written,
            "search": search,
            "key": architecture.key,
            "metrics": dict(metrics),
            "genes": architecture.to_dict(),
        }
        if error is not None:
            record["error"] = error
        append_jsonl(self.path, record)
        self.written += 1
