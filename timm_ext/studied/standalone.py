"""The settings by which an architecture of a supernet is trained from scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nas_core.errors import CheckpointError, ConfigError
from nas_core.options import arguments_of, config_from, options_of
from nas_core.space import Architecture, SearchSpace, save_space
from timm_ext.data import has_training_images, is_training_data
from timm_ext.options import TrainConfig

__all__ = ["settings"]

_OF_THE_STUDY = ("data", "val_data", "val_count", "output", "model", "subnet", "search_space", "init")
_DROPPED = ("mos", "sampling", "valid_random", "stability_", "teacher", "distill_")
"""How options begin that only a supernet has, or who learns from a teacher."""


def settings(
    state: Mapping[str, Any],
    path: Path,
    data: str | None,
    space: SearchSpace,
    architecture: Architecture,
    folder: Path,
    changes: Mapping[str, str],
) -> list[str]:
    """Options of ``timm_ext.train``: those of the supernet's training for the static network of an architecture,
    without a teacher and without weights to start from; the space and the architecture are written into the folder.
    One process trains, which averages the gradients of as many batches for an update as all workers of the supernet
    read.

    Args:
        state: content of the supernet's checkpoint, which lies at ``path``.
        data: where the images are now that it is evaluated on, or the data that they are held out of.
        changes: options that are others, by their fields' names.

    Raises:
        CheckpointError: the checkpoint is none of ``timm_ext.train``. ConfigError: it was made of a trained network,
            which has no settings to train it from scratch; ``data`` is only to evaluate on, so that nothing says which
            images to train on; or an option that there is not, or that the study sets.
    """
    trained = state.get("train")
    if not isinstance(trained, dict):
        raise CheckpointError(
            f"{path} does not say how it was trained; standalone training needs a checkpoint of timm_ext.train"
        )
    if not trained.get("model"):
        raise ConfigError(
            f"{path} began as a trained network: nothing says how to train its subnets from scratch; give a supernet"
            " that was trained with --model, or results with --standalone"
        )
    if own := [name for name in changes if name in _OF_THE_STUDY]:
        raise ConfigError(f"setting {own[0]} of standalone training is set by the study; leave it out")
    known = {option.name: option for option in options_of(TrainConfig)}
    kept = {name: value for name, value in trained.items() if name in known and not name.startswith(_DROPPED)}
    kept["grad_accum_steps"] = kept.get("grad_accum_steps", 1) * state.get("worker_count", 1)
    if "epochs" in changes and "updates" not in changes:
        kept |= {"updates": 0, "warmup_updates": 0}  # which take precedence
    elif "warmup_epochs" in changes:
        kept["warmup_updates"] = 0
    given = {name: known[name].read(value) if name in known else value for name, value in changes.items()}
    save_space(space, folder / "space.yml")
    architecture.save(folder / "architecture.json")
    config = config_from(TrainConfig, {**kept, **given}, "setting of timm_ext.train")
    training, validation = _images(config, data)
    return arguments_of(
        replace(
            config,
            data=training,
            val_data=validation,
            output=str(folder),
            search_space=str(folder / "space.yml"),
            subnet=str(folder / "architecture.json"),
            init="",
        )
    )


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
        return str(Path(data or trained_on).resolve()), ""
    validation = Path(data or config.val_data)
    moved = not trained_on.exists() and has_training_images(validation)
    return str((validation if moved else trained_on).resolve()), str(validation.resolve())
