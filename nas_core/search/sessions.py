"""When, where and how long a search ran: what a reader of its results asks first."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from nas_core.machine import cpu_name

FILE = "sessions.json"
FORMAT, VERSION = "nas-ext/sessions", 1
_LONGEST = 1e10
"""Seconds, 300 years: more is damage, as are NaN and infinity."""


class Session:
    """One run of a search in its folder, kept in ``sessions.json`` beside those before it.

    Apart from the other files, which are equal however often a search was interrupted. A run begins with its first
    evaluation: reading back what is there is none.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._before = read_sessions(folder)
        self._since = time.monotonic()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._machine = {
            "host": platform.node(),
            "cpu": cpu_name(),
            "cores": os.cpu_count() or 0,
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        }

    def save(self) -> None:
        """Write how long it has run until now, which a process that is killed later does not lose.

        Raises:
            NasExtError: the file cannot be written.
        """
        seconds = round(time.monotonic() - self._since, 1)
        this = {"started": self._started, "seconds": seconds, "machine": self._machine}
        write_json(self._path, {"format": FORMAT, "version": VERSION, "sessions": [*self._before, this]})


def read_sessions(folder: Path) -> list[dict[str, Any]]:
    """``started`` (ISO 8601, UTC), ``seconds`` and ``machine`` of each run so far; none if the file is missing or
    damaged, as nothing else depends on it."""
    try:
        content = read_json(folder / FILE)
    except DataError:
        return []
    listed = content.get("sessions") if isinstance(content, Mapping) else None
    return [one for one in listed if _complete(one)] if isinstance(listed, list) else []


def _complete(session: Any) -> bool:
    return (
        isinstance(session, dict)
        and isinstance(session.get("started"), str)
        and isinstance(seconds := session.get("seconds"), int | float)
        and 0 <= seconds < _LONGEST
        and isinstance(session.get("machine"), dict)
    )
