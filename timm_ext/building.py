"""What a training run is made of: the model and the loaders of images of its settings."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import timm
import torch
from timm.data import create_loader, resolve_model_data_config

from nas_core.errors import ConfigError, unknown_choice
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.models import MODELS
from timm_ext.options import TrainConfig

__all__ = ["build_model", "make_loader", "seed_everything"]


def build_model(config: TrainConfig, classes: int) -> VisionModel:
    """Raises:
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


def seed_everything(seed: int, epoch: int) -> None:
    """Everything that draws in this epoch, here and in the workers that the loader starts."""
    mixed = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)
