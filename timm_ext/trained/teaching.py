"""Learning from a teacher in ``timm_ext.train``: the loss of each subnet, and what a teacher said kept on disk.

The teacher is a frozen network, or the largest subnet of the sandwich rule: that one then goes first in each update and
learns from the labels alone, the others learn from what it said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timm.data import resolve_model_data_config
from torch import Tensor

from nas_core.errors import ConfigError, DataError
from nas_core.space import Architecture
from nas_core.supernet.teacher import (
    CacheSettings,
    TeacherCache,
    TopK,
    distillation_loss,
    hidden_loss,
    top_k,
    top_k_distillation_loss,
)
from nas_core.supernet.teacher.cache import digest_of
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.options import LARGEST, TrainConfig
from timm_ext.trained.layers import Heard, layer_pairs, listening
from timm_ext.trained.teacher import Teacher
from timm_ext.workers import Workers

_DRAWN_BY = ("seed", "batch_size", "scale", "aa", "color_jitter", "reprob", "mixup", "cutmix", "workers",
             "no_prefetcher")  # fmt: skip
"""Settings that the images of an epoch depend on. Others do too where augmentation and dropout draw from one stream, as
without processes that read images: that is told by what the images are, :func:`_checks_of`."""
_NEAR = 1e-3
"""By how much checks of one image may differ, by the arithmetic of other machines; those of other images do by about
1."""

Forward = Callable[[], Mapping[str, Tensor]]
"""Gives ``loss`` (of the labels) and ``output`` (logits), as timm's tasks do."""


@dataclass
class Lesson:
    """What the teacher says about a batch."""

    logits: Tensor | TopK | None = None
    """(B, K), or the probabilities that were kept; None until the largest subnet has run."""
    heard: Heard | None = None


class Teaching:
    """A teacher, and how much of it counts.

    Args:
        passes: of an epoch, on each worker.

    Raises:
        NasExtError: the teacher cannot be used, or the cache is of other settings.
    """

    def __init__(
        self, config: TrainConfig, model: VisionModel, images: ImageSet, passes: int, workers: Workers
    ) -> None:
        self.config, self.model, self.workers, self.passes = config, model, workers, passes
        self.hears = bool(config.distill_hidden or config.distill_attention)
        self.teacher: Teacher | None = None
        if config.teacher != LARGEST:
            self.teacher = Teacher(Path(config.teacher), model, workers.device, config.precision)
            if self.hears and self.teacher.elastic is None:
                raise ConfigError(
                    f"teacher {config.teacher} with --distill-hidden or --distill-attention: its channels are in"
                    " another order than a supernet's; give the supernet that 'nas-ext elastic' has made of it"
                )
        elif not model.is_supernet:
            raise ConfigError("--teacher largest of a network that is no supernet; give a trained network's file")
        self._cache: tuple[int, TeacherCache] | None = None
        self._other: list[Tensor] = []
        self._settings: CacheSettings | None = None
        if config.teacher_cache and self.teacher is not None:
            classes = model.num_classes
            self._settings = CacheSettings(
                teacher=self.teacher.digest(),
                data=_digest(config, model, images, workers),
                words=classes,
                kept=config.teacher_top_k or classes,
                temperature=config.distill_temperature,
                numbers="fp32",
                checked=True,
            )

    # -- what the teacher says -----------------------------------------------------------------------------------------

    def lesson(self, images: Tensor, epoch: int, index: int) -> Lesson:
        """What the teacher says about the ``index``-th pass of an epoch; of the largest subnet nothing yet.

        Raises:
            DataError: what was kept is of other images. On devices that compute while the host goes on, this is told
                every ``log_interval`` passes and by :meth:`close`.
        """
        if self.teacher is None:
            return Lesson()
        if self._settings is None:
            return Lesson(*self.teacher.answer(images, self.hears))
        cache, sample = self.cache_of(epoch), index * self.workers.count + self.workers.rank
        checks = _checks_of(images)
        if (kept := cache.get([sample], images.device)) is None:
            logits, _ = self.teacher.answer(images)
            cache.put([sample], top_k(logits, self._settings.kept, self.config.distill_temperature), checks)
            return Lesson(cache.get([sample], images.device))
        known = cache.checks([sample]).to(images.device, non_blocking=True)
        self._other.append(((checks - known).abs() > _NEAR).any())
        if images.device.type == "cpu" or not (index + 1) % self.config.log_interval:
            self._check_images()
        return Lesson(kept)

    def _check_images(self) -> None:
        other, self._other = self._other, []
        if other and bool(torch.stack(other).any()):
            raise DataError(
                f"the teacher's probabilities in --teacher-cache {self.config.teacher_cache} are of other images than"
                " this run has drawn: another setting of the student, as dropout, moves the augmentation where no"
                " process reads images (--workers 0); give a new folder as --teacher-cache, or the settings it was"
                " made with"
            )

    def cache_of(self, epoch: int) -> TeacherCache:
        """The cache of an epoch; that of the one before is closed.

        Raises:
            DataError: it is of other settings. NasExtError: it cannot be written.
        """
        assert self._settings is not None
        if self._cache is None or self._cache[0] != epoch:
            self.close()
            folder = Path(self.config.teacher_cache) / f"epoch-{epoch + 1:04}"
            lengths = np.full(self.passes * self.workers.count, self.config.batch_size)
            self._cache = epoch, TeacherCache(folder, self._settings, lengths)
        return self._cache[1]

    def close(self) -> None:
        """Bring what was kept to the disk.

        Raises:
            DataError: what was read is of other images.
        """
        if self._cache is not None:
            self._cache[1].close()
            self._cache = None
        self._check_images()

    def check(self, epoch: int) -> None:
        """Raise before the first update where the cache is of other settings."""
        if self._settings is not None:
            self.cache_of(epoch)

    # -- what the student learns ---------------------------------------------------------------------------------------

    def order(self, architectures: Sequence[Architecture]) -> list[Architecture]:
        """The architectures of an update, a largest subnet that teaches first."""
        return sorted(architectures, key=lambda one: not self._teaches(one))

    def loss_of(self, forward: Forward, lesson: Lesson) -> Callable[[Architecture], Tensor]:
        """What gives the :meth:`loss` of an architecture."""
        return lambda architecture: self.loss(architecture, forward, lesson)

    def loss(self, architecture: Architecture, forward: Forward, lesson: Lesson) -> Tensor:
        """The loss of one architecture, which ``forward`` runs: labels by 1 - w and the teacher's probabilities by w,
        and differences of hidden states and attention by their own weights."""
        heard = None
        if self.hears:
            with listening(self.model, architecture) as told:
                found = forward()
            heard = told()
        else:
            found = forward()
        if self._teaches(architecture):
            lesson.logits, lesson.heard = found["output"].detach(), heard and heard.detached()
            return found["loss"]
        assert lesson.logits is not None, "the teacher goes first"
        weight = self.config.distill_weight
        loss = (1 - weight) * found["loss"] + weight * self._distilled(found["output"], lesson.logits)
        if heard is not None and lesson.heard is not None:
            loss = loss + self._compared(architecture, heard, lesson.heard)
        return loss

    def _teaches(self, architecture: Architecture) -> bool:
        return self.teacher is None and architecture == self.model.space.largest()

    def _distilled(self, logits: Tensor, target: Tensor | TopK) -> Tensor:
        temperature = self.config.distill_temperature
        if isinstance(target, TopK):
            return top_k_distillation_loss(logits, target, temperature)
        return distillation_loss(logits, target, temperature)

    def _compared(self, architecture: Architecture, own: Heard, other: Heard) -> Tensor:
        teacher = self.model if self.teacher is None else self.teacher.elastic
        assert teacher is not None
        pairs = layer_pairs(self.model, architecture, teacher, teacher.space.largest())
        total = own.hidden[0].new_zeros(())
        for weight, mine, theirs in zip(
            (self.config.distill_hidden, self.config.distill_attention), own, other, strict=True
        ):
            if weight:
                each = [hidden_loss(mine[one], theirs[two]) for one, two in pairs]
                total = total + weight * torch.stack(each).mean()
        return total


def _checks_of(images: Tensor) -> Tensor:
    """(B): of each image a sum of its numbers, weighted by their places, that is about 1."""
    flat = images.flatten(1).float()
    places = torch.arange(flat.shape[1], device=flat.device, dtype=torch.float64)
    return (flat * torch.cos(places.square()).float()).sum(1) / flat.shape[1] ** 0.5


def _digest(config: TrainConfig, model: VisionModel, images: ImageSet, workers: Workers) -> str:
    """What tells the images of a run, in the order and the form in which the teacher sees them."""
    data = resolve_model_data_config(model)
    about: dict[str, Any] = {name: getattr(config, name) for name in _DRAWN_BY}
    about |= {name: data[name] for name in ("input_size", "mean", "std", "interpolation")}
    about |= {"device": workers.device.type, "count": workers.count, "classes": list(images.source.names)}
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    return digest_of([text, images.indices.astype(np.int64), images.source.labels.astype(np.int64)])
