"""Supernets with other experts, trained by the settings of one that is there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.files import file_digest, make_folder, real_path, write_json
from nas_core.layers import MoSConfig
from nas_core.layers.mos import NONE
from nas_core.locks import only_process
from nas_core.studies.base import Subject
from nas_core.studies.trainings import LOG, Training, check_settings, train_all
from nas_core.supernet.host import Supernet

_TRAINED, _SETTINGS = "trained.json", "settings.json"
"""The files that say that a supernet's training has ended, and by which settings all of a folder were trained."""


def experts_of(subject: Subject) -> MoSConfig:
    """The experts of a supernet.

    Raises:
        ConfigError: it has none, or its host trains no supernets.
    """
    experts = subject.supernet.experts
    if experts.kind == NONE:
        raise ConfigError(f"{subject.path} has no experts; give a supernet that was trained with --mos")
    return experts


def train_supernets(
    subject: Subject, wanted: Mapping[str, MoSConfig], folder: Path, changes: Mapping[str, str], jobs: int = 1
) -> dict[str, Supernet]:
    """Train supernets with other experts by the settings of one that is there; what has the same experts is that one.

    Each has a folder of its own with the log of its training. Called again, what is trained is opened, and the others
    go on from what their trainer has kept.

    Args:
        wanted: experts by name; names are those of folders.
        changes: settings that are others than the supernet's.
        jobs: how many are trained at the same time.

    Raises:
        ConfigError: the folder holds supernets of other settings or data, or one is still being trained by a study that
            was killed; others as of :func:`experts_of`. DataError: a training failed.
    """
    experts, trainer = experts_of(subject), subject.supernet
    own = _folder(subject, folder)
    make_folder(own)
    folders = {name: own / name for name, each in wanted.items() if each != experts}
    with only_process(own / "supernets.lock", f"is training into {own}", "give another --out"):
        missing = _missing(folders)
        settings = _check_settings(trainer, own, changes, missing)
        trainings = {}
        for name in missing:
            make_folder(folders[name])
            command = trainer.supernet_command(real_path(folders[name]), wanted[name], changes)
            trainings[name] = Training(command, folders[name])

        def finished(name: str, seconds: float) -> None:
            record = {"experts": asdict(wanted[name]), "seconds": round(seconds, 2), "ended": time.time()}
            write_json(folders[name] / _TRAINED, record)

        if missing:
            write_json(own / _SETTINGS, {"checkpoint": str(real_path(subject.path)), **settings})
            train_all(trainings, jobs, finished, "supernet")
    opened: dict[str, Any] = {name: trainer.trained_supernet(path) for name, path in folders.items()}
    return {name: opened.get(name, trainer) for name in wanted}


def check_supernets(
    subject: Subject, wanted: Mapping[str, MoSConfig], folder: Path, changes: Mapping[str, str]
) -> None:
    """Raise what :func:`train_supernets` would before it trains, and train nothing."""
    experts, trainer = experts_of(subject), subject.supernet
    own = _folder(subject, folder)
    missing = _missing({name: own / name for name, each in wanted.items() if each != experts})
    _check_settings(trainer, own, changes, missing)
    for name in missing[:1]:
        with tempfile.TemporaryDirectory() as place:
            trainer.supernet_command(Path(place), wanted[name], changes)


def _folder(subject: Subject, folder: Path) -> Path:
    """Where the supernets are that are compared with one, in the folder of a study."""
    return folder / "supernets" / file_digest(subject.path)[:12]


def _missing(folders: Mapping[str, Path]) -> list[str]:
    return [name for name, network in folders.items() if not (network / _TRAINED).exists()]


def _check_settings(trainer: Supernet, own: Path, changes: Mapping[str, str], missing: Sequence[str]) -> dict[str, Any]:
    """What supernets are trained by, after a check that those which a folder holds were trained so; data only where
    some is read."""
    settings: dict[str, Any] = {"changes": dict(changes)}
    if missing:
        settings["data"] = dict(trainer.training_data())
    if any(own.glob(f"*/{LOG}")):  # else, what is noted has trained nothing
        check_settings(own / _SETTINGS, settings, "supernets")
    return settings
