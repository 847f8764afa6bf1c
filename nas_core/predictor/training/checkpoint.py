"""A fit that was interrupted goes on where it stood."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.differences import check_same_settings
from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.training.trainer import Trainer

EVERY_S = 30.0
"""Seconds between two writes."""


def member_file(checkpoint: Path, member: int) -> Path:
    """The file in which a checkpoint keeps one of the networks of a predictor, counted from 0."""
    return checkpoint.with_name(f"{checkpoint.name}.{member}.safetensors")


KIND = "training"


class Checkpoint:
    """The files of an unfinished fit: one for each member, written every half minute, removed at the end."""

    def __init__(self, path: Path, begun: Mapping[str, Any]) -> None:
        self.path, self.begun = path, dict(begun)
        self.written = time.monotonic()
        self._own: set[Path] = set()

    def load(self, member: int, trainer: Trainer) -> None:
        """Bring a trainer to where the file says, if there is one.

        Raises:
            ConfigError: the file belongs to a fit with other data or settings.
            DataError: it is damaged.
        """
        path = member_file(self.path, member)
        if not path.exists():
            return
        header, tensors = read_artifact(path, KIND)
        begun = header.get("begun")
        if not isinstance(begun, dict):
            raise DataError(f"{path}: the checkpoint is damaged (of no known fit); remove it to begin anew")
        advice = "give another file, or remove it to begin anew"
        check_same_settings(f"{path} is of a fit with", begun, self.begun, advice)
        try:
            trainer.restore(tensors)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0][:120]
            raise DataError(f"{path}: the checkpoint is damaged ({reason}); remove it to begin anew") from None
        self._own.add(path)

    def save(self, member: int, trainer: Trainer) -> None:
        """Write the trainer's state, if the last write is long enough ago or training has ended.

        Raises:
            ConfigError: a weight is no finite number; the former file is kept.
        """
        now = time.monotonic()
        if now - self.written >= EVERY_S or trainer.finished:
            trainer.check()
            path = member_file(self.path, member)
            write_artifact(path, KIND, {"begun": self.begun}, trainer.state())
            self._own.add(path)
            self.written = time.monotonic()

    def remove(self) -> None:
        """Remove the files that were read or written; the fit is complete."""
        for path in self._own:
            path.unlink(missing_ok=True)


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
