"""A fit that was interrupted goes on where it stood."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.differences import check_same_settings
from nas_core.errors import DataError
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.training.trainer import Trainer
from nas_core.predictor.training.unfinished import EVERY_S, member_file

__all__ = ["Checkpoint"]

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
