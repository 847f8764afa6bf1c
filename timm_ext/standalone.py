"""Command-line options of ``timm_ext.train`` for the training runs of studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.reading import real_path
from nas_core.layers import MoSConfig
from nas_core.options import arguments_of, config_from
from nas_core.space import Architecture, SearchSpace, save_space
from timm_ext.data import has_training_images, is_training_data, validation_data
from timm_ext.options import TrainConfig

_OF_THE_STUDY = ("data", "val_data", "val_count", "output", "model", "subnet", "search_space", "init", "keep_every")
_DROPPED = ("mos", "sampling", "valid_random", "teacher", "distill_")


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
    config = _changed(origin, _from_scratch(origin), changes, _DROPPED)
    return arguments_of(replace(_static(origin, config, architecture, folder), init=""))


def further_settings(
    origin: Origin,
    architecture: Architecture,
    folder: Path,
    changes: Mapping[str, str],
    inherited: Path,
    every: int,
    most: int,
) -> list[str]:
    """Return the options that train a subnet further, starting with inherited weights.

    Args:
        inherited: file of the extracted subnet.
        every: number of updates between checkpoints.
        most: number of updates.
    """
    trained = _trained(origin)
    if not trained.get("updates"):
        trained["warmup_updates"] = 0
    config = _changed(origin, {**trained, "updates": most}, changes, _DROPPED, ("updates", "epochs"))
    static = replace(_static(origin, config, architecture, folder), init=str(inherited), keep_every=every)
    if not config.model:  # the file says what it is
        static = replace(static, search_space="", subnet="")
    return arguments_of(static)


def supernet_settings(origin: Origin, experts: MoSConfig, folder: Path, changes: Mapping[str, str]) -> list[str]:
    """Return the options that train the supernet with other experts."""
    trained = _from_scratch(origin)
    if trained.get("init"):
        raise ConfigError(
            f"the training of {origin.path} started with the weights of {trained['init']}, so its experts cannot be"
            " changed; give a supernet that was trained from scratch"
        )
    names = ("experts", "router_hidden", "router_layers")
    trained |= {"mos": experts.kind, **{f"mos_{name}": getattr(experts, name) for name in names}}
    return arguments_of(_placed(origin, _changed(origin, trained, changes, fixed=("mos",)), folder))


def _trained(origin: Origin) -> dict[str, Any]:
    trained = origin.state.get("train")
    if not trained:
        raise CheckpointError(f"{origin.path} has no training settings; give a checkpoint of timm_ext.train")
    return dict(trained)


def _from_scratch(origin: Origin) -> dict[str, Any]:
    trained = _trained(origin)
    if not trained.get("model"):
        raise ConfigError(
            f"{origin.path} was converted from a trained network, so its subnets cannot be trained from scratch; give a"
            " supernet that was trained with --model, or existing results as --set standalone=FILE"
        )
    return trained


def _changed(
    origin: Origin,
    trained: Mapping[str, Any],
    changes: Mapping[str, str],
    dropped: tuple[str, ...] = (),
    fixed: tuple[str, ...] = (),
) -> TrainConfig:
    """Return changed training settings for one process.

    Args:
        dropped: prefixes of options that are left out.
        fixed: prefixes of options that may not be changed, in addition to :data:`_OF_THE_STUDY`.
    """
    if names := [name for name in changes if name in _OF_THE_STUDY or name.startswith(fixed)]:
        raise ConfigError(f"training setting {names[0]} cannot be changed, since the study sets it; leave it out")
    source = Path(origin.data or trained["data"])
    if "seed" in changes and not validation_data(source, trained.get("val_data"), trained["val_count"]):
        raise ConfigError(
            f"training setting seed cannot be changed, since the seed of {origin.path} also selected the validation"
            " images; leave it out"
        )
    settings = {name: value for name, value in trained.items() if not any(map(name.startswith, dropped))}
    settings["grad_accum_steps"] *= origin.state["worker_count"]
    if "epochs" in changes and "updates" not in changes:
        settings |= {"updates": 0, "warmup_updates": 0}  # they have priority over epochs
    elif "warmup_epochs" in changes:
        settings["warmup_updates"] = 0
    return config_from(TrainConfig, {**settings, **changes}, "setting of timm_ext.train")


def _placed(origin: Origin, config: TrainConfig, folder: Path) -> TrainConfig:
    save_space(origin.space, folder / "space.yml")
    training, validation = _images(config, origin.data)
    places = {"data": training, "val_data": validation, "output": str(folder), "subnet": ""}
    return replace(config, **places, search_space=str(folder / "space.yml"), keep_every=0)


def _static(origin: Origin, config: TrainConfig, architecture: Architecture, folder: Path) -> TrainConfig:
    architecture.save(folder / "architecture.json")
    return replace(_placed(origin, config, folder), subnet=str(folder / "architecture.json"))


def data_of(origin: Origin) -> dict[str, str]:
    training, validation = _images(_changed(origin, _trained(origin), {}), origin.data)
    return {"data": training, "val_data": validation}


def _images(config: TrainConfig, data: str | None) -> tuple[str, str]:
    trained_on = Path(config.data)
    if not config.val_data:
        if data and not is_training_data(Path(data), trained_on, config.val_count):
            raise ConfigError(
                f"{data} has only validation images; give the images that the supernet was trained on, {trained_on}, or"
                " a folder with train/"
            )
        return str(real_path(data or trained_on)), ""
    validation = Path(data or config.val_data)
    moved = not trained_on.exists() and has_training_images(validation)
    return str(real_path(validation if moved else trained_on)), str(real_path(validation))
