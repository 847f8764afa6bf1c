"""What studies ask of an image supernet beside evaluating it; see :mod:`nas_core.supernet.host`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from timm_ext.model import VisionModel

__all__ = ["StudiedSupernet"]


class StudiedSupernet(ABC):
    """A checkpoint whose training loss can be differentiated, and whose architectures can be trained from scratch."""

    path: Path
    space: SearchSpace
    device: torch.device
    precision: str
    _model: VisionModel
    _state: dict[str, Any]
    _data: str | None
    _subset: str
    _images: int | None

    @abstractmethod
    def evaluated(self) -> Any:
        """The images that are evaluated, with their labels, in batches in the order of the folders."""

    @abstractmethod
    def evaluate(self, architecture: Architecture) -> dict[str, float]:
        """Metrics on them."""

    # -- weights -------------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Any:
        """What holds the weights; see :class:`nas_core.supernet.host.Differentiable`."""
        return self._model.net

    def training_loss(self, architecture: Architecture, batch: Any) -> Tensor:
        """Cross-entropy with the label smoothing of the training, in nats, with its gradient; without dropout."""
        from timm_ext.studied.loss import training_loss

        smoothing = float((self._state.get("train") or {}).get("smoothing", 0.0))
        return training_loss(
            self._model, self.space.validate(architecture), batch, self.device, self.precision, smoothing
        )

    # -- standalone training -------------------------------------------------------------------------------------------

    def examples_key(self) -> str:
        """A digest of the images that are evaluated and of their labels."""
        from timm_ext.studied.loss import digest

        return digest(self.evaluated())

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        """``python -m timm_ext.train`` with the settings of the supernet's training."""
        from timm_ext.studied.standalone import settings

        arguments = settings(self._state, self.path, self._data, self.space, architecture, folder, changes)
        return [sys.executable, "-m", "timm_ext.train", *arguments]

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        """``loss`` and ``top1`` after the last update, on the images of the same split."""
        trained = type(self)(
            folder / "last.pt",  # type: ignore[call-arg]
            data=self._data,
            valid_subset=self._subset,
            valid_sentences=self._images,
            device=str(self.device),
            precision=self.precision,
        )
        return trained.evaluate(trained.space.largest()), trained.examples_key()
