"""The passes of an epoch: which images go through the network when, and which of them make one update."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nas_core.errors import DataError
from timm_ext.building import make_loader, make_mixup, order_seed, seed_everything
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.options import TrainConfig
from timm_ext.workers import Workers


class Pass(NamedTuple):
    """A batch on its way through the network."""

    images: Tensor
    labels: Tensor
    update: int
    """The update that it is a part of, counted from the beginning of the run."""
    part: int
    """Its number among the parts, from 0."""
    parts: int
    """How many parts the update has."""


class Passes:
    """One worker's batches, prepared on its device.

    As in timm's trainer the last update of an epoch is made of the passes that are left, and images that fill no batch
    are left out.

    Raises:
        DataError: not one batch is filled.
    """

    def __init__(self, config: TrainConfig, model: VisionModel, images: ImageSet, workers: Workers) -> None:
        self.config, self.model, self.images, self.workers = config, model, images, workers
        self.count = len(images) // (config.batch_size * workers.count)
        """Passes of an epoch."""
        if not self.count:
            each = f" on each of {workers.count} workers" if workers.count > 1 else ""
            raise DataError(
                f"{len(images)} images do not fill one batch of {config.batch_size}{each}; lower --batch-size"
            )
        self.updates = math.ceil(self.count / config.grad_accum_steps)
        """Updates of an epoch."""
        self.mixup = make_mixup(config, model.num_classes)
        self.layout = torch.channels_last if config.channels_last else torch.preserve_format
        self._loader: Any = None

    def epoch(self, epoch: int, updates: int) -> Iterator[Pass]:
        """The passes of an epoch's first updates."""
        device, most, first = self.workers.device, self.config.grad_accum_steps, epoch * self.updates
        loader = self._drawn(epoch + 1)
        for index, (images, labels) in enumerate(islice(loader, min(self.count, updates * most))):
            part = index % most
            images = images.to(device, memory_format=self.layout, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            if self.mixup is not None:
                images, labels = self.mixup(images, labels)
            yield Pass(images, labels, first + index // most, part, min(most, self.count - index + part))

    def _drawn(self, epoch: int) -> Any:
        """The loader, with everything set that it draws from."""
        seed_everything(self.config.seed, epoch, self.workers.rank)
        if self._loader is None or not self.config.persistent_workers:
            self._loader = make_loader(self.config, self.model, self.images, training=True, workers=self.workers)
        if self.workers.count > 1:
            self._loader.sampler.set_epoch(order_seed(self.config.seed, epoch))
        return self._loader
