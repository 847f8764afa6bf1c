"""Command-line options of ``timm_ext.train`` for the training runs of studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.reading import real_path
from nas_core.options import arguments_of, config_from
from nas_core.space import Architecture, SearchSpace, save_space
from timm_ext.data import has_training_images, is_training_data, validation_data
from timm_ext.options import TrainConfig

_STUDY_OPTIONS = ("data", "val_data", "val_count", "output", "model", "subnet", "search_space", "init")
_SUPERNET_OPTIONS = ("mos", "sampling", "valid_random", "teacher", "distill_")


class Origin(NamedTuple):
    """Supernet whose training settings are copied."""

    state: Mapping[str, Any]
    """Content of the supernet's checkpoint."""
    path: Path
    data: str | None
    """Validation images, or the training images from which they are held out."""
    space: SearchSpace


def settings(origin: Origin, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
    """Return the options that train one architecture from scratch with the supernet's settings, without a teacher.

    The search space and the architecture are written into ``folder``.

    Args:
        changes: option name -> other value.
    """
    trained = _training_settings(origin)
    if not trained.get("model"):
        raise ConfigError(
            f"{origin.path} was converted from a trained network, so its subnets cannot be trained from scratch; give a"
            " supernet that was trained with --model, or existing results as --set standalone=FILE"
        )
    config = _change_settings(origin, trained, changes)
    space_file, architecture_file = folder / "space.yml", folder / "architecture.json"
    save_space(origin.space, space_file)
    architecture.save(architecture_file)
    training, validation = _image_paths(config, origin.data)
    paths = {"data": training, "val_data": validation, "output": str(folder), "init": ""}
    return arguments_of(replace(config, **paths, search_space=str(space_file), subnet=str(architecture_file)))


def _training_settings(origin: Origin) -> dict[str, Any]:
    trained = origin.state.get("train")
    if not trained:
        raise CheckpointError(f"{origin.path} has no training settings; give a checkpoint of timm_ext.train")
    return dict(trained)


def _change_settings(origin: Origin, trained: Mapping[str, Any], changes: Mapping[str, str]) -> TrainConfig:
    """Return changed training settings for one process."""
    if names := [name for name in changes if name in _STUDY_OPTIONS]:
        raise ConfigError(f"training setting {names[0]} cannot be changed, since the study sets it; leave it out")
    source = Path(origin.data or trained["data"])
    if "seed" in changes and not validation_data(source, trained.get("val_data"), trained["val_count"]):
        raise ConfigError(
            f"training setting seed cannot be changed, since the seed of {origin.path} also selected the validation"
            " images; leave it out"
        )
    settings = {name: value for name, value in trained.items() if not name.startswith(_SUPERNET_OPTIONS)}
    settings["grad_accum_steps"] *= origin.state["worker_count"]
    if "epochs" in changes and "updates" not in changes:
        settings |= {"updates": 0, "warmup_updates": 0}  # they have priority over epochs
    elif "warmup_epochs" in changes:
        settings["warmup_updates"] = 0
    return config_from(TrainConfig, {**settings, **changes}, "setting of timm_ext.train")


def data_of(origin: Origin) -> dict[str, str]:
    training, validation = _image_paths(_change_settings(origin, _training_settings(origin), {}), origin.data)
    return {"data": training, "val_data": validation}


def _image_paths(config: TrainConfig, data: str | None) -> tuple[str, str]:
    trained_on = Path(config.data)
    if not config.val_data:
        if data and not is_training_data(Path(data), trained_on, config.val_count):
            raise ConfigError(
                f"{data} has only validation images; give the images that the supernet was trained on, {trained_on}, or"
                " a folder with train/"
            )
        return str(real_path(data or trained_on)), ""
    validation = Path(data or config.val_data)
    train_moved = not trained_on.exists() and has_training_images(validation)
    return str(real_path(validation if train_moved else trained_on)), str(real_path(validation))
