"""Distillation in ``timm_ext.train``.

The teacher is a frozen network, or the largest subnet, which is trained on labels only.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn

from nas_core.errors import ConfigError, NasExtError
from nas_core.layers.depth import kept_layers
from nas_core.precision import computing_in
from nas_core.space import Architecture
from nas_core.supernet.teacher.cache import CacheSettings, TeacherCache, digest_of, weights_digest
from nas_core.supernet.teacher.losses import TopK, distillation_loss, hidden_loss, top_k, top_k_distillation_loss
from nas_core.supernet.teacher.taps import Taps
from timm_ext.checkpoint import SETTINGS_KEY, load_model, read_file
from timm_ext.data import ImageSet
from timm_ext.model import VisionModel
from timm_ext.models import prepared_for
from timm_ext.options import LARGEST, TrainConfig
from timm_ext.trained.reading import read_source
from timm_ext.workers import Workers

_DRAWN_BY = ("seed", "batch_size", "scale", "aa", "color_jitter", "reprob", "mixup", "cutmix", "workers",
             "no_prefetcher")  # fmt: skip
"""Settings that determine the augmented images of an epoch."""
_DROPOUTS = ("drop", "attn_drop", "act_drop", "drop_path", "mos_router_dropout")


class Activations(NamedTuple):
    """Activations (B, N, C) of the layers of a subnet, from first to last."""

    hidden: tuple[Tensor, ...]
    """Normalised inputs of the feed-forward sublayers."""
    attention: tuple[Tensor, ...]
    """Outputs of the attention sublayers."""


@contextmanager
def capture(model: VisionModel, architecture: Architecture) -> Iterator[Callable[[], Activations]]:
    """Make ``model`` run one architecture in a ``with`` block; yield a function that returns its last activations."""
    subnet = model.select(architecture)
    hidden = {f"hidden.{index}": layer.ffn.fc1.weight for index, layer in enumerate(subnet.layers)}
    attention = {f"attention.{index}": layer.self_attn.out_proj.weight for index, layer in enumerate(subnet.layers)}
    with (
        model.running(architecture, subnet),
        Taps(hidden, inputs=True, outputs=False) as read,
        Taps(attention, inputs=False, outputs=True) as written,
    ):
        yield lambda: Activations(
            tuple(read.inputs[name][-1] for name in hidden), tuple(written.outputs[name][-1] for name in attention)
        )


def layer_pairs(
    student: VisionModel, subnet: Architecture, teacher: VisionModel, teacher_subnet: Architecture
) -> list[tuple[int, int]]:
    """Return pairs (layer of the student, layer of the teacher) whose activations are compared.

    Networks of equal depth compare the same layers; otherwise the student's layers are spread evenly over the teacher.
    """
    layers, teacher_layers = (
        kept_layers(range(len(model.net.layers)), architecture.number("layers"), model.net.config.layer_order)
        for model, architecture in ((student, subnet), (teacher, teacher_subnet))
    )
    if len(student.net.layers) == len(teacher.net.layers):
        return [(index, teacher_layers.index(layer)) for index, layer in enumerate(layers) if layer in teacher_layers]
    count = len(layers)
    return [(index, round((index + 1) * len(teacher_layers) / count) - 1) for index in range(count)]


class Teacher:
    """Frozen teacher network from a checkpoint of ``timm_ext`` (largest subnet) or timm's trainer."""

    def __init__(self, path: Path, student: VisionModel, device: torch.device, precision: str) -> None:
        self.path, self.device, self.precision = path, device, precision
        model, prepared = _open_network(path)
        self.model = model.to(device).eval().requires_grad_(False)
        data = resolve_model_data_config(student)
        (mean, std), (teacher_mean, teacher_std) = (
            [torch.tensor(config[name]).view(-1, 1, 1).to(device) for name in ("mean", "std")]
            for config in (data, prepared)
        )
        self.scale, self.shift = std / teacher_std, (mean - teacher_mean) / teacher_std
        try:
            shape = tuple(self.logits(torch.zeros(1, *data["input_size"], device=device)).shape)
        except (AssertionError, RuntimeError, NasExtError) as error:
            reason = " ".join(str(error).split())[:160]
            raise ConfigError(
                f"teacher {path} does not accept images of shape {data['input_size']} ({reason}); give a teacher for"
                " this image size"
            ) from None
        if shape != (1, student.num_classes):
            raise ConfigError(
                f"teacher {path} returns logits of shape {shape}, but the student {(1, student.num_classes)}; give a"
                " teacher with the same classes"
            )

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits (B, K) of images (B, channels, height, width), normalised as for the student."""
        with torch.no_grad(), computing_in(self.precision, self.device):
            logits: Tensor = self.model(images * self.scale + self.shift)
        return logits

    def output(self, images: Tensor, with_activations: bool = False) -> tuple[Tensor, Activations | None]:
        if not with_activations:
            return self.logits(images), None
        with capture(self.model, self.model.architecture) as activations:
            logits = self.logits(images)
        return logits, activations()


def _open_network(path: Path) -> tuple[nn.Module, Mapping[str, Any]]:
    content, metadata = read_file(path)
    if SETTINGS_KEY in content or SETTINGS_KEY in metadata or "net.patch_embed.weight" in content.get("state_dict", {}):
        model = load_model(path)
        return model, prepared_for(model, str(content.get("arch")))
    source = read_source(path, elastic=False)
    return source.model, source.prepared


@dataclass
class TeacherBatch:
    """Outputs of the teacher for one batch."""

    logits: Tensor | TopK | None = None
    """Logits (B, K) or cached probabilities; None if not yet computed."""
    activations: Activations | None = None


class Distillation:
    """Teacher, distillation losses and cache of a training run.

    Args:
        passes: batches per epoch and worker.
    """

    def __init__(
        self, config: TrainConfig, model: VisionModel, images: ImageSet, passes: int, workers: Workers
    ) -> None:
        self.config, self.model, self.workers, self.passes = config, model, workers, passes
        self.compares = bool(config.distill_hidden or config.distill_attention)
        self.teacher: Teacher | None = None
        if config.teacher != LARGEST:
            self.teacher = Teacher(Path(config.teacher), model, workers.device, config.precision)
            if self.compares and not isinstance(self.teacher.model, VisionModel):
                raise ConfigError(
                    f"teacher {config.teacher} is a model of timm, but --distill-hidden and --distill-attention need a"
                    " supernet; convert it with 'nas-ext elastic', or leave these options out"
                )
        elif not model.is_supernet:
            raise ConfigError(
                "--teacher largest needs a supernet, but the model is a static network; give a checkpoint as --teacher"
            )
        self._cache: tuple[int, TeacherCache] | None = None
        self._settings: CacheSettings | None = None
        if config.teacher_cache and self.teacher is not None:
            classes = model.num_classes
            self._settings = CacheSettings(
                teacher=weights_digest(self.teacher.model.state_dict()),
                data=_digest(config, model, images, workers),
                words=classes,
                kept=config.teacher_top_k or classes,
                temperature=config.distill_temperature,
                numbers="fp32",
            )

    def batch(self, images: Tensor, epoch: int, index: int) -> TeacherBatch:
        """Return the teacher's outputs for batch ``index`` of an epoch; empty if the largest subnet is the teacher."""
        if self.teacher is None:
            return TeacherBatch()
        if self._settings is None:
            return TeacherBatch(*self.teacher.output(images, self.compares))
        cache, sample = self._cache_of(epoch), [index * self.workers.count + self.workers.rank]
        if not cache.has(sample):
            logits, _ = self.teacher.output(images)
            cache.put(sample, top_k(logits, self._settings.kept, self.config.distill_temperature))
        return TeacherBatch(cache.get(sample, images.device))

    def _cache_of(self, epoch: int) -> TeacherCache:
        if self._cache is None or self._cache[0] != epoch:
            self.close()
            assert self._settings is not None
            folder = Path(self.config.teacher_cache) / f"epoch-{epoch + 1:04}"
            lengths = np.full(self.passes * self.workers.count, self.config.batch_size)
            self._cache = epoch, TeacherCache(folder, self._settings, lengths)
        return self._cache[1]

    def close(self) -> None:
        if self._cache is not None:
            self._cache[1].flush()
            self._cache = None

    def check(self, epoch: int) -> None:
        """Raise an error if the cache of an epoch was written with other settings."""
        if self._settings is not None:
            self._cache_of(epoch)

    def order(self, architectures: Sequence[Architecture]) -> list[Architecture]:
        """Sort the largest subnet first, if it is the teacher."""
        return sorted(architectures, key=lambda architecture: not self._teaches(architecture))

    def loss(
        self, architecture: Architecture, forward: Callable[[], Mapping[str, Tensor]], batch: TeacherBatch
    ) -> Tensor:
        """Return the distillation loss of one architecture.

        Args:
            forward: function that runs the network and returns ``loss`` (against labels) and ``output`` (logits).
        """
        activations = None
        if self.compares:
            with capture(self.model, architecture) as captured:
                output = forward()
            activations = captured()
        else:
            output = forward()
        if self._teaches(architecture):
            batch.logits = output["output"].detach()
            if activations is not None:
                batch.activations = Activations(
                    *(tuple(tensor.detach() for tensor in tensors) for tensors in activations)
                )
            return output["loss"]
        weight, distilled = self.config.distill_weight, distillation_loss
        if isinstance(batch.logits, TopK):
            distilled = top_k_distillation_loss
        soft = distilled(output["output"], batch.logits, self.config.distill_temperature)
        loss = (1 - weight) * output["loss"] + weight * soft
        if activations is None or batch.activations is None:
            return loss
        teacher = self.model if self.teacher is None else self.teacher.model
        pairs = layer_pairs(self.model, architecture, teacher, teacher.space.largest())
        weights = self.config.distill_hidden, self.config.distill_attention
        for weight, outputs, targets in zip(weights, activations, batch.activations, strict=True):
            differences = [hidden_loss(outputs[student], targets[position]) for student, position in pairs]
            loss = loss + weight * torch.stack(differences).mean()
        return loss

    def _teaches(self, architecture: Architecture) -> bool:
        return self.teacher is None and architecture == self.model.space.largest()


def _digest(config: TrainConfig, model: VisionModel, images: ImageSet, workers: Workers) -> str:
    """Return a hash of everything that determines the images of each batch."""
    data = resolve_model_data_config(model)
    settings: dict[str, Any] = {name: getattr(config, name) for name in _DRAWN_BY}
    settings |= {name: data[name] for name in ("input_size", "mean", "std", "interpolation")}
    settings |= {"device": workers.device.type, "count": workers.count, "classes": list(images.source.names)}
    if any(getattr(config, name) for name in _DROPOUTS) and (not config.workers or config.reprob):
        # Dropout then draws from the same random stream as the augmentation.
        settings |= {"model": model.settings(), "passes": (config.sampling, config.grad_accum_steps)}
    text = np.frombuffer(json.dumps(settings, sort_keys=True).encode(), dtype=np.uint8)
    return digest_of([text, images.indices.astype(np.int64), images.source.labels.astype(np.int64)])
