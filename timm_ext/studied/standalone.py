"""The settings by which an architecture of a supernet is trained from scratch or further, or another supernet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nas_core.errors import CheckpointError, ConfigError
from nas_core.files import real_path
from nas_core.layers import MoSConfig
from nas_core.options import arguments_of, config_from, options_of
from nas_core.space import Architecture, SearchSpace, save_space
from timm_ext.data import has_training_images, holds_out, is_training_data
from timm_ext.options import TrainConfig

_OF_THE_STUDY = ("data", "val_data", "val_count", "output", "model", "subnet", "search_space", "init", "keep_every")
_OPTIONS = {option.name: option for option in options_of(TrainConfig)}
_DROPPED = ("mos", "sampling", "valid_random", "stability_", "teacher", "distill_")
"""How options begin that only a supernet has, or who learns from a teacher."""


class Origin(NamedTuple):
    """A supernet by whose settings networks are trained."""

    state: Mapping[str, Any]
    """Content of its checkpoint."""
    path: Path
    """Where that lies."""
    data: str | None
    """Where the images are now that it is evaluated on, or the data that they are held out of."""
    space: SearchSpace


def settings(origin: Origin, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
    """Options of ``timm_ext.train``: those of the supernet's training for the static network of an architecture,
    without a teacher and without weights to start from; the space and the architecture are written into the folder.
    One process trains, which averages the gradients of as many batches for an update as all workers of the supernet
    read.

    Args:
        changes: options that are others, by their fields' names.

    Raises:
        CheckpointError: the checkpoint is none of ``timm_ext.train``. ConfigError: it was made of a trained network,
            which has no settings to train it from scratch; the data is only to evaluate on, so that nothing says which
            images to train on; or an option that there is not, or that the study sets.
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
    """The same to train a subnet further.

    Args:
        inherited: its weights.
        every: updates after which it is kept each time.
        most: updates of the whole run.

    Raises:
        CheckpointError, ConfigError: as of :func:`settings`, except that also subnets of a supernet that was made of a
            trained network are trained further.
    """
    if own := [name for name in ("updates", "epochs") if name in changes]:
        raise ConfigError(f"setting {own[0]} of further training is set by the study; give --set most_updates")
    trained = _trained(origin)
    if not trained.get("updates"):
        trained["warmup_updates"] = 0
    config = _changed(origin, {**trained, "updates": most}, changes, _DROPPED)
    static = replace(_static(origin, config, architecture, folder), init=str(inherited), keep_every=every)
    if not config.model:  # the file says what it is
        static = replace(static, search_space="", subnet="")
    return arguments_of(static)


def supernet_settings(origin: Origin, experts: MoSConfig, folder: Path, changes: Mapping[str, str]) -> list[str]:
    """Options of ``timm_ext.train``: those of the supernet's training for one with other experts.

    Raises:
        CheckpointError, ConfigError: as of :func:`settings`; or the supernet began with weights of a file.
    """
    trained = _from_scratch(origin)
    if trained.get("init"):
        raise ConfigError(
            f"{origin.path} began with the weights of {trained['init']}, which have its experts; give a supernet that"
            " was trained from scratch"
        )
    if own := [name for name in changes if name.startswith("mos")]:
        raise ConfigError(f"setting {own[0]} of a supernet is set by the study; leave it out")
    trained |= {"mos": experts.kind, "mos_experts": experts.experts, "mos_router_hidden": experts.router_hidden}
    trained |= {"mos_router_layers": experts.router_layers, "mos_router_dropout": experts.router_dropout}
    trained |= {"mos_start": experts.start, "mos_rank": experts.rank}
    if experts.kind == "none" or experts.experts == 1:
        trained["mos_apart"] = 0.0  # there is nothing to keep apart
    config = _placed(origin, _changed(origin, trained, changes), folder)
    return arguments_of(config)


def _trained(origin: Origin) -> dict[str, Any]:
    """Settings of the training that wrote a checkpoint.

    Raises:
        CheckpointError: it was none of ``timm_ext.train``.
    """
    trained = origin.state.get("train")
    if not isinstance(trained, dict) or trained.keys() != _OPTIONS.keys() or "worker_count" not in origin.state:
        raise CheckpointError(
            f"{origin.path} does not say how it was trained; standalone training needs a checkpoint of timm_ext.train"
        )
    return dict(trained)


def _from_scratch(origin: Origin) -> dict[str, Any]:
    """The same of a training that did not begin as a trained network.

    Raises:
        ConfigError: it did.
    """
    trained = _trained(origin)
    if not trained.get("model"):
        raise ConfigError(
            f"{origin.path} began as a trained network: nothing says how to train its subnets from scratch; give a"
            " supernet that was trained with --model, or results with --set standalone=FILE"
        )
    return trained


def _changed(
    origin: Origin, trained: Mapping[str, Any], changes: Mapping[str, str], dropped: tuple[str, ...] = ()
) -> TrainConfig:
    """Settings of a training with some others, for one process.

    Args:
        trained: settings of the supernet's training.
        dropped: how options begin that are left out.

    Raises:
        ConfigError, UnknownChoiceError: an option that there is not, or that the study sets.
    """
    if own := [name for name in changes if name in _OF_THE_STUDY]:
        raise ConfigError(f"setting {own[0]} of this training is set by the study; leave it out")
    if "seed" in changes and _holds_out(trained, origin.data):
        raise ConfigError(
            f"setting seed of this training: it draws the images that {origin.path} holds out for validation, so that"
            " another would train on them; leave it out"
        )
    kept = {name: value for name, value in trained.items() if not any(map(name.startswith, dropped))}
    kept["grad_accum_steps"] *= origin.state["worker_count"]
    if "epochs" in changes and "updates" not in changes:
        kept |= {"updates": 0, "warmup_updates": 0}  # which take precedence
    elif "warmup_epochs" in changes:
        kept["warmup_updates"] = 0
    given = {name: _OPTIONS[name].read(value) if name in _OPTIONS else value for name, value in changes.items()}
    return config_from(TrainConfig, {**kept, **given}, "setting of timm_ext.train")


def _placed(origin: Origin, config: TrainConfig, folder: Path) -> TrainConfig:
    """The settings with a run folder, into which the space is written, and with the images where they are now."""
    save_space(origin.space, folder / "space.yml")
    training, validation = _images(config, origin.data)
    places = {"data": training, "val_data": validation, "output": str(folder), "subnet": ""}
    return replace(config, **places, search_space=str(folder / "space.yml"), keep_every=0)


def _static(origin: Origin, config: TrainConfig, architecture: Architecture, folder: Path) -> TrainConfig:
    """The same for one architecture, which is written too."""
    architecture.save(folder / "architecture.json")
    return replace(_placed(origin, config, folder), subnet=str(folder / "architecture.json"))


def data_of(origin: Origin) -> dict[str, str]:
    """The folders of images that :func:`settings` has trainings take.

    Raises:
        CheckpointError, ConfigError: as that function.
    """
    training, validation = _images(_changed(origin, _trained(origin), {}), origin.data)
    return {"data": training, "val_data": validation}


def _holds_out(trained: Mapping[str, Any], data: str | None) -> bool:
    """Whether a training takes the images that it validates on from those to train on."""
    if trained.get("val_data"):
        return False
    return holds_out(Path(data or trained["data"]), trained["val_count"])


def _images(config: TrainConfig, data: str | None) -> tuple[str, str]:
    """What is trained on and what is validated on, where ``data`` is given for what the supernet is evaluated on.

    Raises:
        ConfigError: no images to train on are known.
    """
    trained_on = Path(config.data)
    if not config.val_data:
        if data and not is_training_data(Path(data), trained_on, config.val_count):
            raise ConfigError(
                f"{data} has no images to train standalone networks on, only such to evaluate; expected what the"
                f" supernet was trained on, {trained_on}, or a folder with train/ in it"
            )
        return str(real_path(data or trained_on)), ""
    validation = Path(data or config.val_data)
    moved = not trained_on.exists() and has_training_images(validation)
    return str(real_path(validation if moved else trained_on)), str(real_path(validation))
