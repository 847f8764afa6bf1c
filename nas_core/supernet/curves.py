"""What the log of a training tells: losses over updates, whichever host trained."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nas_core.errors import DataError, MissingHostError
from nas_core.files import os_errors
from nas_core.supernet.host import each_host

Curve = tuple[Sequence[float], Sequence[float]]
"""Updates (or epochs), and the values there."""


@dataclass(frozen=True)
class TrainingCurves:
    """The curves of one training."""

    source: Path
    """The file they were read from."""
    over: str
    """What they go over: ``updates`` or ``epochs``."""
    panels: Mapping[str, Mapping[str, Curve]]
    """Title of an axis, with the unit -> name -> curve."""


def read_curves(checkpoint: Path, log: Path | None = None) -> TrainingCurves | None:
    """The curves in ``log``, or, without one, in a log beside a supernet's checkpoint; None if none is found there.

    Raises:
        DataError: ``log`` is missing, or no installed host can read it. NasExtError: the system refuses to.
    """
    with _logging_kept():
        if log is None:
            return _first_readable(checkpoint, None)
        with os_errors("read", log):
            if not log.is_file():
                raise DataError(f"no file {log}; give the log of a training to --train-log")
            found = _first_readable(checkpoint, log)
    if found is None:
        raise DataError(
            f"{log} is no log of a training that is known here; expected fairseq's (--log-format simple or json), or"
            " metrics.json or summary.csv of a training with timm"
        )
    return found


def _first_readable(checkpoint: Path, log: Path | None) -> TrainingCurves | None:
    for _, host in each_host():
        if isinstance(host, MissingHostError):
            continue
        try:
            for path in [log] if log is not None else host.training_logs(checkpoint):
                if path.is_file() and (curves := host.training_curves(path)) is not None:
                    return curves  # type: ignore[no-any-return]
        except OSError:  # a log that was only found is worth no more than its curves
            if log is not None:
                raise
    return None


@contextmanager
def _logging_kept() -> Iterator[None]:
    """Importing fairseq makes the logging of every package verbose; here that is undone."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
