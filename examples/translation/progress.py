"""What a running command has reached, in one line: from its output, or from the file it fills."""

from __future__ import annotations

import json
from pathlib import Path


class TrainingProgress:
    """Reads the JSON log lines of ``fairseq-train``."""

    def __init__(self, minutes: float, updates: int) -> None:
        self.minutes, self.updates = minutes, updates
        self._valid = ""

    def __call__(self, line: str) -> str | None:
        _, _, text = line.partition(" | INFO | ")
        kind, _, content = text.partition(" | ")
        if kind not in ("train_inner", "valid") or not content.startswith("{"):
            return None
        values = json.loads(content)
        if kind == "valid":
            self._valid = f", validation loss {values.get('valid_loss', '?')}"
            return None
        of_updates = f" of {self.updates}" if self.updates else ""
        of_minutes = f" of {self.minutes:g}" if self.minutes else ""
        minutes = float(values.get("wall", 0)) / 60
        done = f"update {values.get('num_updates')}{of_updates}, {minutes:.1f}{of_minutes} min"
        return f"{done}, loss {values.get('loss')}{self._valid}"


class LineCount:
    """Counts the records of a growing file of JSON lines, its header apart."""

    def __init__(self, path: Path, what: str, header: int = 0, total: int = 0) -> None:
        self.path, self.what, self.header, self.total = path, what, header, total

    def __call__(self) -> str | None:
        if not self.path.exists():
            return None
        count = max(0, self.path.read_bytes().count(b"\n") - self.header)
        return f"{count}{f' of {self.total}' if self.total else ''} {self.what}"
