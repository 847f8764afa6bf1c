"""Model, data loaders, optimizer and schedule of a training run."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from timm.data import Mixup, create_loader, resolve_model_data_config
from timm.optim import create_optimizer_v2, get_optimizer_info
from timm.scheduler import create_scheduler_v2
from torch import Tensor

from nas_core.errors import ConfigError, DataError, check_choice
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.models import MODELS, network_of_file
from timm_ext.options import EXPERTS, TrainConfig
from timm_ext.workers import Workers

_DECAY_EPOCHS, _MILESTONES = 90, (90, 180, 270)


def build_model(config: TrainConfig, classes: int) -> VisionModel:
    rates = {"drop_rate": config.drop, "attn_drop_rate": config.attn_drop, "drop_path_rate": config.drop_path}
    rates["architecture_seed"] = config.seed
    if not config.model:  # the weights are loaded with those of any other --init
        model = network_of_file(Path(config.init), classes, act_drop_rate=config.act_drop, **rates)
        if config.img_size:
            model.set_input_size(config.img_size)
        return model
    if timm.is_model(config.model) and config.model not in MODELS:
        raise ConfigError(
            f"--model {config.model} is a model of timm, not of timm_ext; train it with timm's train.py, or give one of"
            f" {', '.join(MODELS)}"
        )
    check_choice("model (--model)", config.model, MODELS)
    arguments = {name: getattr(config, name) for name in ("search_space", "subnet", "mos", "img_size")}
    arguments = {name: value for name, value in {**arguments, "act_drop_rate": config.act_drop}.items() if value}
    experts = config.changed(EXPERTS)
    arguments |= {name: getattr(config, name) for name in experts}
    model = timm.create_model(config.model, num_classes=classes, **rates, **arguments)
    if experts and model.net.config.mos.kind == "none":
        raise ConfigError(
            f"--{experts[0].replace('_', '-')} is a setting of experts, but this network has none; give a supernet and"
            " --mos layer or neuron, or leave it out"
        )
    return model


def compile_static(backend: str, models: Sequence[VisionModel]) -> None:
    """Compile static networks in place with ``torch.compile``."""
    if any(model.is_supernet for model in models):
        raise ConfigError(
            "--torchcompile cannot be used with a supernet, since each update trains another subnet and each would be"
            " compiled; give one --subnet, or leave --torchcompile out"
        )
    for model in models:
        model.compile(backend=backend)


def make_loader(config: TrainConfig, model: VisionModel, images: ImageSet, training: bool, workers: Workers) -> Any:
    """Build timm's loader: shuffled and augmented images for training, otherwise centre crops in the given order."""
    data = resolve_model_data_config(model)
    distributed = training and workers.count > 1
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
        crop_mode=data["crop_mode"],
        num_workers=config.workers,
        distributed=distributed,
        pin_memory=workers.device.type == "cuda",
        use_prefetcher=workers.device.type == "cuda",
        persistent_workers=False,
        device=workers.device,
    )


def make_optimizer(config: TrainConfig, model: VisionModel) -> torch.optim.Optimizer:
    betas = {"betas": config.opt_betas} if config.opt_betas else {}
    try:
        if betas and not get_optimizer_info(config.opt).has_betas:
            raise ConfigError(
                f"--opt {config.opt} has no betas; leave out --opt-betas, or give another optimizer, such as adamw"
            )
        return create_optimizer_v2(
            model.parameters() if config.decay_all else model,
            opt=config.opt,
            lr=config.lr,
            weight_decay=config.weight_decay,
            **betas,
        )
    except (ValueError, TypeError, AssertionError) as error:
        raise ConfigError(f"timm rejects --opt {config.opt} ({error}); give another optimizer, such as adamw") from None


def make_schedule(config: TrainConfig, optimizer: torch.optim.Optimizer, per_epoch: int) -> Any:
    """Build timm's learning rate schedule, stepped per update; with ``--updates``, warmup precedes the schedule.

    Args:
        per_epoch: updates per epoch.
    """
    if config.updates:
        warmup = config.warmup_updates or min(config.warmup_epochs * per_epoch, config.updates - 1)
        decay = 0.2 if config.sched in ("wsd", "rsqrt") else _DECAY_EPOCHS * per_epoch
        durations = {
            "num_epochs": config.updates - warmup,
            "warmup_epochs": warmup,
            "warmup_prefix": True,
            "decay_epochs": decay,
            "decay_milestones": [epoch * per_epoch for epoch in _MILESTONES],
            "updates_per_epoch": 1,
        }
    else:
        durations = {
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
            **durations,
        )
    except (ValueError, AssertionError) as error:
        raise ConfigError(
            f"timm rejects --sched {config.sched} ({error}); give another schedule, such as cosine"
        ) from None
    return schedule


def seed_everything(seed: int, epoch: int, rank: int = 0) -> None:
    """Seed Python, numpy and torch for an epoch, differently on each worker."""
    mixed_seed = _mix_seed(seed, epoch, rank)
    random.seed(mixed_seed)
    np.random.seed(mixed_seed)
    torch.manual_seed(mixed_seed)


def order_seed(seed: int, epoch: int) -> int:
    """Return the seed of an epoch's image order."""
    # The second number that torch's loader draws with one worker.
    generator = torch.Generator().manual_seed(_mix_seed(seed, epoch, 0))
    return [int(torch.empty((), dtype=torch.int64).random_(generator=generator)) for _ in ("loader", "order")][1]


def _mix_seed(seed: int, epoch: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1)[0])


Pass = tuple[Tensor, Tensor, int, int, int]
"""Images, labels, index of the update, index of the pass within the update, and passes per update."""


class Passes:
    """Training batches of one worker; incomplete batches are dropped."""

    def __init__(self, config: TrainConfig, model: VisionModel, images: ImageSet, workers: Workers) -> None:
        self.config, self.model, self.images, self.workers = config, model, images, workers
        self.count = len(images) // (config.batch_size * workers.count)
        """Passes (forward and backward, for one batch) per epoch."""
        if not self.count:
            raise DataError(
                f"{len(images)} training images are too few for a batch of {config.batch_size} on each of"
                f" {workers.count} workers; lower --batch-size"
            )
        self.updates = math.ceil(self.count / config.grad_accum_steps)
        """Weight updates per epoch."""
        self.mixup: Mixup | None = None
        if config.mixup > 0 or config.cutmix > 0:
            labels = {"label_smoothing": config.smoothing, "num_classes": model.num_classes}
            self.mixup = Mixup(config.mixup, config.cutmix, **labels)

    def epoch(self, epoch: int, updates: int) -> Iterator[Pass]:
        """Yield each :data:`Pass` of the first ``updates`` updates of an epoch."""
        device, per_update, start = self.workers.device, self.config.grad_accum_steps, epoch * self.updates
        seed_everything(self.config.seed, epoch + 1, self.workers.rank)
        loader = make_loader(self.config, self.model, self.images, training=True, workers=self.workers)
        if self.workers.count > 1:
            loader.sampler.set_epoch(order_seed(self.config.seed, epoch + 1))
        for index, (images, labels) in enumerate(islice(loader, min(self.count, updates * per_update))):
            offset = index % per_update
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            if self.mixup is not None:
                images, labels = self.mixup(images, labels)
            yield images, labels, start + index // per_update, offset, min(per_update, self.count - index + offset)
