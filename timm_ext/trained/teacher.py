"""The network that a student learns from: read from a file, frozen, and fed what it was trained to be fed.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.precision import computing_in
from nas_core.supernet.teacher import weights_digest
from timm_ext.checkpoint import KEY, load_model, read_file
from timm_ext.model import VisionModel
from timm_ext.models import prepared_for
from timm_ext.trained.layers import Heard, listening
from timm_ext.trained.reading import read_source


class Teacher:
    """A trained network in evaluation mode that gives no gradient: a checkpoint of timm_ext (of a supernet, its
    largest network) or of timm's trainer.

    Args:
        student: what learns, which says how images are prepared.

    Raises:
        DataError: no such file. CheckpointError: it is damaged. ConfigError: it has other classes, or does not read
            images of the student's size.
    """

    def __init__(self, path: Path, student: VisionModel, device: torch.device, precision: str) -> None:
        self.path, self.device, self.precision = path, device, precision
        model, prepared = _opened(path)
        self.model = model.to(device).eval().requires_grad_(False)
        self.scale, self.shift = _between(resolve_model_data_config(student), prepared, device)
        self._check(student)

    def _check(self, student: VisionModel) -> None:
        size = resolve_model_data_config(student)["input_size"]
        try:
            logits = self.logits(torch.zeros(1, *size, device=self.device))
        except (AssertionError, RuntimeError, NasExtError) as error:
            reason = " ".join(str(error).split())[:160]
            raise ConfigError(f"teacher {self.path} does not read images of {size} ({reason})") from None
        if logits.shape != (1, student.num_classes):
            found = f"{logits.shape[1]} classes" if logits.ndim == 2 else "no classifier"
            raise ConfigError(
                f"teacher {self.path} has {found}, the student {student.num_classes} classes; give one of the same"
            )

    @property
    def elastic(self) -> VisionModel | None:
        """The teacher as a network of timm_ext, if it is one."""
        return self.model if isinstance(self.model, VisionModel) else None

    def digest(self) -> str:
        """What tells its weights from another's."""
        return weights_digest(self.model.state_dict())

    def logits(self, images: Tensor) -> Tensor:
        """Images (B, channels, height, width) as the student gets them, to logits (B, K)."""
        with torch.no_grad(), computing_in(self.precision, self.device):
            if self.scale is not None and self.shift is not None:
                images = images * self.scale + self.shift
            logits: Tensor = self.model(images)
        return logits

    def answer(self, images: Tensor, hear: bool = False) -> tuple[Tensor, Heard | None]:
        """The logits, and if wanted what each layer computed."""
        if self.elastic is None or not hear:
            return self.logits(images), None
        with listening(self.elastic, self.elastic.architecture) as heard:
            logits = self.logits(images)
        return logits, heard()


def _opened(path: Path) -> tuple[nn.Module, Mapping[str, Any]]:
    """The network of a file, and how its images are prepared."""
    if not path.is_file():
        raise DataError(f"no file {path}; give a trained network as --teacher")
    content, metadata = read_file(path)
    if KEY in content or KEY in metadata or "net.patch_embed.weight" in content.get("state_dict", {}):
        model = load_model(path)
        return model, prepared_for(model, str(content.get("arch")))
    source = read_source(path, elastic=False)
    return source.model, source.prepared


def _between(
    student: Mapping[str, Any], teacher: Mapping[str, Any], device: torch.device
) -> tuple[Tensor | None, Tensor | None]:
    """Factor and summand (channels, 1, 1) that make the student's normalised images the teacher's; None if they are."""
    own, other = ({name: torch.tensor(config[name]) for name in ("mean", "std")} for config in (student, teacher))
    if all(torch.equal(own[name], other[name]) for name in own):
        return None, None
    scale, shift = own["std"] / other["std"], (own["mean"] - other["mean"]) / other["std"]
    return scale.view(-1, 1, 1).to(device), shift.view(-1, 1, 1).to(device)
