"""Whether a calibration belongs to the supernets and to the data that they are evaluated on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.files import file_digest, real_path
from nas_core.search.calibration.model import Calibration


def evaluation_settings(data: Path | None, valid_subset: str, valid_sentences: int | None) -> dict[str, Any]:
    """On what a supernet is evaluated, as :meth:`nas_core.supernet.host.Host.open` takes it."""
    return {
        "data": str(real_path(data)) if data else None,
        "valid_subset": valid_subset,
        "valid_sentences": valid_sentences,
    }


def require_made_with(
    calibration: Calibration,
    path: Path,
    checkpoints: Sequence[Path],
    options: Mapping[str, Any],
    others: str = "the others come with --further-supernet",
) -> None:
    """Insist that a calibration was made with these supernets, in this order, evaluated on the same data.

    Args:
        path: its file, for the message.
        options: of :func:`nas_core.supernet.host.open_supernet`.
        others: what to do where another number is wanted, for the message.

    Raises:
        ConfigError: it was not. DataError: a checkpoint is missing.
    """
    wanted, given = calibration.info.get("supernets") or [], [file_digest(each) for each in checkpoints]
    if not wanted:
        raise ConfigError(f"{path} does not say with which supernets it was made; make it with 'nas-ext lab calibrate'")
    if len(given) != len(wanted):
        raise ConfigError(f"{path} was made with {len(wanted)} supernets, here {len(given)} are given; {others}")
    if given != wanted and sorted(given) == sorted(wanted):
        raise ConfigError(f"{path} was made with these supernets in another order; give them as it was made")
    if given != wanted:
        paths = zip(checkpoints, given, wanted, strict=True)
        other = next(each for each, had, asked in paths if had != asked)
        raise ConfigError(f"{path} was made with another supernet than {other}; calibrate on the one that is searched")
    for name, value in (calibration.info.get("settings") or {}).items():
        if options.get(name) != value:
            raise ConfigError(
                f"{path} was made with {name} {value}, the search has {options.get(name)}; give the same, or calibrate"
                " anew"
            )
