"""What a running command has reached, in one line: from its output, or from the file it fills."""

from __future__ import annotations

import json
import time
from pathlib import Path

from examples.demo.pace import Clock, Remaining, spoken, updates_in


class TrainingProgress:
    """Reads the JSON log lines of ``fairseq-train``; says how far it is and how long it still takes."""

    def __init__(self, updates: int, clock: Clock = time.monotonic) -> None:
        self.updates = updates
        self._remaining = Remaining(updates, clock)
        self._valid = ""

    def __call__(self, line: str) -> str | None:
        done = updates_in(line)
        if done is None:
            _, _, content = line.partition(" | valid | ")
            if content.startswith("{"):
                self._valid = f", validation loss {json.loads(content).get('valid_loss', '?')}"
            return None
        loss = json.loads(line.partition(" | train_inner | ")[2]).get("loss")
        left = self._remaining(done)
        to_go = f", {spoken(left)} to go" if left else ""
        return f"update {done} of {self.updates}{to_go}, loss {loss}{self._valid}"


class LineCount:
    """Counts the records of a growing file of JSON lines, its header apart; of a ``total`` it says how long the rest
    takes."""

    def __init__(self, path: Path, what: str, header: int = 0, total: int = 0, clock: Clock = time.monotonic) -> None:
        self.path, self.what, self.header, self.total = path, what, header, total
        self._remaining = Remaining(total, clock)

    def __call__(self) -> str | None:
        if not self.path.exists():
            return None
        count = max(0, self.path.read_bytes().count(b"\n") - self.header)
        left = self._remaining(count)
        to_go = f", {spoken(left)} to go" if left and left > 0 else ""
        return f"{count}{f' of {self.total}' if self.total else ''} {self.what}{to_go}"
