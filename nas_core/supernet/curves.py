"""Training curves from the logs of any host framework."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nas_core.errors import DataError, MissingHostError
from nas_core.files.writing import os_errors
from nas_core.supernet.host import each_host

Curve = tuple[Sequence[float], Sequence[float]]
"""Horizontal values (updates or epochs) and vertical values."""


@dataclass(frozen=True)
class TrainingCurves:
    """Metrics over one training."""

    source: Path
    over: str
    """Horizontal axis: ``updates`` or ``epochs``."""
    panels: Mapping[str, Mapping[str, Curve]]
    """Curves by label of the vertical axis, then by legend."""


def read_curves(checkpoint: Path, log: Path | None = None) -> TrainingCurves | None:
    """Read training curves from ``log``, or from a log next to a checkpoint. Return None if there is no such log.

    Raises:
        DataError: ``log`` is missing or has an unknown format.
    """
    with _logging_kept():
        if log is None:
            return _first_readable(checkpoint, None)
        with os_errors("read", log):
            if not log.is_file():
                raise DataError(f"file {log} does not exist; give the log of a training to --train-log")
            curves = _first_readable(checkpoint, log)
    if curves is None:
        raise DataError(
            f"{log} is not a known training log; expected one of fairseq (--log-format simple or json), or metrics.json"
            " or summary.csv of timm"
        )
    return curves


def _first_readable(checkpoint: Path, log: Path | None) -> TrainingCurves | None:
    for _, host in each_host():
        if isinstance(host, MissingHostError):
            continue
        try:
            for path in [log] if log is not None else host.training_logs(checkpoint):
                if path.is_file() and (curves := host.training_curves(path)) is not None:
                    return curves  # type: ignore[no-any-return]
        except OSError:  # an unreadable log next to a checkpoint is no error
            if log is not None:
                raise
    return None


@contextmanager
def _logging_kept() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
