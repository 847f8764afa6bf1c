"""Distillation in ``timm_ext.train``.

The teacher is a frozen network, or the largest subnet, which is trained on labels only.

Shapes: B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn

from nas_core.errors import ConfigError, NasExtError
from nas_core.precision import computing_in
from nas_core.space import Architecture
from nas_core.supernet.teacher.losses import distillation_loss
from timm_ext.checkpoint import SETTINGS_KEY, load_model, read_file
from timm_ext.model import VisionModel
from timm_ext.models import prepared_for
from timm_ext.options import LARGEST, TrainConfig
from timm_ext.trained.reading import read_source


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


def _open_network(path: Path) -> tuple[nn.Module, Mapping[str, Any]]:
    content, metadata = read_file(path)
    if SETTINGS_KEY in content or SETTINGS_KEY in metadata or "net.patch_embed.weight" in content.get("state_dict", {}):
        model = load_model(path)
        return model, prepared_for(model, str(content.get("arch")))
    source = read_source(path, elastic=False)
    return source.model, source.prepared


class Distillation:
    """Teacher and distillation loss of a training run."""

    def __init__(self, config: TrainConfig, model: VisionModel, device: torch.device) -> None:
        self.config, self.model = config, model
        self.teacher: Teacher | None = None
        if config.teacher != LARGEST:
            self.teacher = Teacher(Path(config.teacher), model, device, config.precision)
        elif not model.is_supernet:
            raise ConfigError(
                "--teacher largest needs a supernet, but the model is a static network; give a checkpoint as --teacher"
            )
        self._logits: Tensor | None = None

    def start(self, images: Tensor) -> None:
        """Compute the teacher's logits for a batch, unless the largest subnet is the teacher."""
        if self.teacher is not None:
            self._logits = self.teacher.logits(images)

    def order(self, architectures: Sequence[Architecture]) -> list[Architecture]:
        """Sort the largest subnet first, if it is the teacher."""
        return sorted(architectures, key=lambda architecture: not self._teaches(architecture))

    def loss(self, architecture: Architecture, forward: Callable[[], Mapping[str, Tensor]]) -> Tensor:
        """Return the distillation loss of one architecture for the batch of :meth:`start`.

        Args:
            forward: function that runs the network and returns ``loss`` (against labels) and ``output`` (logits).
        """
        output = forward()
        if self._teaches(architecture):
            self._logits = output["output"].detach()
            return output["loss"]
        weight, temperature = self.config.distill_weight, self.config.distill_temperature
        assert self._logits is not None
        soft = distillation_loss(output["output"], self._logits, temperature)
        return (1 - weight) * output["loss"] + weight * soft

    def _teaches(self, architecture: Architecture) -> bool:
        return self.teacher is None and architecture == self.model.space.largest()
