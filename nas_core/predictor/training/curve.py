"""The loss of each training step, kept through interruptions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.files import read_json, write_json
from nas_core.predictor.training.unfinished import EVERY_S, member_file

__all__ = ["LearningCurve"]


class LearningCurve:
    """Losses by step, from 1. They are kept in a file until :meth:`remove`, so that a training that is continued keeps
    those of its beginning.

    Args:
        checkpoint: of the fit; each time that one of its files is written, the losses are too, so that whatever ends
            the process, one goes on from where the other does.
    """

    def __init__(self, kept: Path, checkpoint: Path | None = None) -> None:
        self.kept, self.checkpoint = kept, checkpoint
        self.saved = self._saved()
        self.steps: list[int] = []
        self.losses: list[float] = []
        self.written = time.monotonic()

    def add(self, step: int, loss: float) -> None:
        """Append the next step. The first one after a start says which of the kept losses still hold: those before."""
        if not self.steps and step > 1 and self.kept.exists():
            before = read_json(self.kept)
            self.steps = [s for s in before["step"] if s < step]
            self.losses = before["loss"][: len(self.steps)]
        self.steps.append(step)
        self.losses.append(loss)
        saved = self._saved()
        if time.monotonic() - self.written >= EVERY_S or saved != self.saved:
            self.saved = saved
            self.keep()

    def keep(self) -> None:
        """Write what there is; called every half minute, and by whoever stops early."""
        if self.steps:
            write_json(self.kept, self.to_dict())
            self.written = time.monotonic()

    def _saved(self) -> tuple[int, ...]:
        """When each member's file of the checkpoint was written."""
        found: list[int] = []
        while self.checkpoint is not None:
            file = member_file(self.checkpoint, len(found))
            if not file.exists():
                break
            found.append(file.stat().st_mtime_ns)
        return tuple(found)

    def remove(self) -> None:
        """Remove the kept file; training is complete."""
        self.kept.unlink(missing_ok=True)

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.steps, "loss": self.losses}

    def thinned(self, members: int = 1, points: int = 60) -> list[tuple[list[float], list[float]]]:
        """Steps and losses of each member for a picture: means over at most so many equal parts."""
        each = max(1, -(-max(self.steps, default=0) // members))
        steps, losses = np.array(self.steps, float), np.array(self.losses, float)
        thin = []
        for member in range(members):
            mine = np.flatnonzero((steps > member * each) & (steps <= (member + 1) * each))
            parts = np.array_split(mine, min(points, len(mine))) if len(mine) else []
            thin.append(
                ([float(steps[p].mean()) - member * each for p in parts], [float(losses[p].mean()) for p in parts])
            )
        return thin
