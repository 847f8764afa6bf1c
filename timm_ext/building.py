"""What a training run is made of: the model, the loaders of images, the optimizer and the schedule of its settings."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import timm
import torch
from timm.data import create_loader, resolve_model_data_config
from timm.optim import create_optimizer_v2, get_optimizer_info
from timm.scheduler import create_scheduler_v2

from nas_core.errors import ConfigError, unknown_choice
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.models import MODELS
from timm_ext.options import TrainConfig

__all__ = ["build_model", "make_loader", "make_optimizer", "make_schedule", "seed_everything"]

_DECAY_EPOCHS, _MILESTONES = 90, (90, 180, 270)
"""timm's defaults for schedules that fall in steps."""


def build_model(config: TrainConfig, classes: int) -> VisionModel:
    """Build the model that a training asks for.

    Raises:
        NasExtError: no such model, space or subnet, or one that timm_ext does not train.
    """
    if timm.is_model(config.model) and config.model not in MODELS:
        raise ConfigError(f"--model {config.model} is one of timm's own; train it with timm's trainer")
    if config.model not in MODELS:
        raise unknown_choice("model (--model)", config.model, MODELS)
    names = ("search_space", "subnet", "mos", "img_size", "act_drop_rate")
    values = (config.search_space, config.subnet, config.mos, config.img_size, config.act_drop)
    given: dict[str, Any] = {name: value for name, value in zip(names, values, strict=True) if value}
    model: VisionModel = timm.create_model(
        config.model,
        num_classes=classes,
        drop_rate=config.drop,
        attn_drop_rate=config.attn_drop,
        drop_path_rate=config.drop_path,
        architecture_seed=config.seed,
        **given,
    )
    return model


def make_loader(config: TrainConfig, model: VisionModel, images: ImageSet, training: bool) -> Any:
    """timm's loader: shuffled and augmented batches to train on, or centre crops in order."""
    data = resolve_model_data_config(model)
    return create_loader(
        images,
        input_size=data["input_size"],
        batch_size=config.batch_size,
        is_training=training,
        re_prob=config.reprob if training else 0.0,
        re_mode="pixel",
        scale=(config.scale, 1.0),
        color_jitter=config.color_jitter,
        auto_augment=config.aa or None,
        interpolation=data["interpolation"],
        mean=data["mean"],
        std=data["std"],
        crop_pct=data["crop_pct"],
        num_workers=config.workers,
        use_prefetcher=False,
        persistent_workers=False,
        device=torch.device(config.device),
    )


def make_optimizer(config: TrainConfig, model: VisionModel) -> torch.optim.Optimizer:
    """Build timm's optimizer for a model.

    Raises:
        ConfigError: timm has no such optimizer, or it has no betas.
    """
    betas = {"betas": config.opt_betas} if config.opt_betas else {}
    try:
        if betas and not get_optimizer_info(config.opt).has_betas:
            raise ConfigError(f"--opt-betas with --opt {config.opt}, which has none; give another, e.g. adamw")
        return create_optimizer_v2(
            model.parameters() if config.decay_all else model,
            opt=config.opt,
            lr=config.lr,
            weight_decay=config.weight_decay,
            **betas,
        )
    except (ValueError, TypeError, AssertionError) as error:
        raise ConfigError(f"--opt {config.opt} is refused by timm ({error}); give another, e.g. adamw") from None


def make_schedule(config: TrainConfig, optimizer: torch.optim.Optimizer, per_epoch: int) -> Any:
    """timm's schedule, asked for each update; with ``--updates`` the rate first rises for its warm-up, then follows the
    schedule over the rest, as fairseq's do.

    Raises:
        ConfigError: timm has no such schedule, or none that follows updates.
    """
    if config.updates:
        rising = config.warmup_updates or min(config.warmup_epochs * per_epoch, config.updates - 1)
        falling = 0.2 if config.sched in ("wsd", "rsqrt") else _DECAY_EPOCHS * per_epoch
        length = {
            "num_epochs": config.updates - rising,
            "warmup_epochs": rising,
            "warmup_prefix": True,
            "decay_epochs": falling,
            "decay_milestones": [epoch * per_epoch for epoch in _MILESTONES],
            "updates_per_epoch": 1,
        }
    else:
        length = {
            "num_epochs": config.epochs,
            "warmup_epochs": min(config.warmup_epochs, config.epochs),
            "updates_per_epoch": per_epoch,
        }
    try:
        schedule, _ = create_scheduler_v2(
            optimizer,
            sched=config.sched,
            min_lr=config.min_lr,
            warmup_lr=config.warmup_lr,
            step_on_epochs=False,
            **length,
        )
    except (ValueError, AssertionError) as error:
        raise ConfigError(f"--sched {config.sched} is refused by timm ({error}); give another, e.g. cosine") from None
    return schedule


def seed_everything(seed: int, epoch: int) -> None:
    """Everything that draws in this epoch, here and in the workers that the loader starts."""
    mixed = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)
