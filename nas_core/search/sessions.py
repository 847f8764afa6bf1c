"""Start time, duration and machine of each session of a search."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.machine import cpu_name

FILE = "sessions.json"
FORMAT, VERSION = "nas-ext/sessions", 1


class Session:
    """Current session of a search, written to ``sessions.json`` in the run folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._before = read_sessions(folder)
        self._since = time.monotonic()
        self._session = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "machine": {
                "host": platform.node(),
                "cpu": cpu_name(),
                "cores": os.cpu_count() or 0,
                "system": f"{platform.system()} {platform.machine()}",
                "python": platform.python_version(),
            },
        }

    def save(self) -> None:
        self._session["seconds"] = round(time.monotonic() - self._since, 1)
        sessions = [*self._before, self._session]
        write_json(self._path, {"format": FORMAT, "version": VERSION, "sessions": sessions})


def read_sessions(folder: Path) -> list[dict[str, Any]]:
    """Return ``started`` (ISO 8601, UTC), ``seconds`` and ``machine`` of each session; empty without a valid file."""
    try:
        content = read_json(folder / FILE)
    except DataError:
        return []
    sessions = content.get("sessions") if isinstance(content, Mapping) else None
    keys = {"started", "seconds", "machine"}
    return [s for s in sessions if isinstance(s, dict) and keys <= s.keys()] if isinstance(sessions, list) else []
