"""What studies ask of an image supernet beside evaluating it; see :mod:`nas_core.supernet.host`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from nas_core.layers import MoSConfig
    from timm_ext.model import VisionModel
    from timm_ext.studied.standalone import Origin

_LAST = "last.pt"


class StudiedSupernet(Supernet, ABC):
    """A checkpoint whose training loss can be differentiated, whose subnets can be trained from scratch or further, and
    whose supernet can be trained with other experts."""

    path: Path
    device: torch.device
    _model: VisionModel
    _state: dict[str, Any]
    _data: str | None
    _subset: str
    _images: int | None

    @abstractmethod
    def evaluated(self) -> Any:
        """The images that are evaluated, with their labels, in batches in the order of the folders."""

    # -- weights -------------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Any:
        """What holds the weights; see :class:`nas_core.supernet.host.Supernet`."""
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

    def _origin(self) -> Origin:
        from timm_ext.studied.standalone import Origin

        return Origin(self._state, self.path, self._data, self.space)

    def _opened(self, path: Path) -> Any:
        """Another checkpoint, evaluated as this one."""
        return type(self)(
            path,  # type: ignore[call-arg]
            data=self._data,
            valid_subset=self._subset,
            valid_sentences=self._images,
            device=str(self.device),
            precision=self.precision,
        )

    def training_data(self) -> dict[str, str]:
        """The folders of images."""
        from timm_ext.studied.standalone import data_of

        return data_of(self._origin())

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        """``python -m timm_ext.train`` with the settings of the supernet's training."""
        from timm_ext.studied.standalone import settings

        return [*_train(), *settings(self._origin(), architecture, folder, changes)]

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        """``loss`` and ``top1`` after the last update, on the images of the same split."""
        trained = self._opened(folder / _LAST)
        return trained.evaluate(trained.space.largest()), trained.examples_key()

    def standalone_updates(self, folder: Path) -> int | None:
        """The updates that the last checkpoint tells."""
        from timm_ext.checkpoint import read_checkpoint

        updates = read_checkpoint(folder / _LAST).get("updates")
        return None if updates is None else int(updates)

    # -- further training ----------------------------------------------------------------------------------------------

    def further_command(
        self, architecture: Architecture, folder: Path, changes: Mapping[str, str], every: int, most: int
    ) -> list[str]:
        """The same trainer, from the inherited weights of the subnet."""
        from timm_ext.studied.standalone import further_settings

        architecture, inherited = self.space.validate(architecture), folder / "inherited.pt"
        arguments = further_settings(self._origin(), architecture, folder, changes, inherited, every, most)
        self.extract(architecture, inherited)
        return [*_train(), *arguments]

    def kept_networks(self, folder: Path) -> dict[int, Path]:
        """What ``--keep-every`` keeps."""
        from timm_ext.settings import KEPT

        return {int(path.stem): path for path in (folder / KEPT).glob("*.pt") if path.stem.isdecimal()}

    def evaluate_network(self, path: Path) -> dict[str, float]:
        """``loss`` and ``top1`` on the very images of this supernet."""
        trained = self._on_its_images(path)
        metrics: dict[str, float] = trained.evaluate(trained.space.largest())
        return metrics

    def _on_its_images(self, path: Path) -> Any:
        trained = self._opened(path)
        trained._batches = self.evaluated()
        return trained

    # -- other experts -------------------------------------------------------------------------------------------------

    @property
    def experts(self) -> MoSConfig:
        """What ``--mos`` and its kin were."""
        experts: MoSConfig = self._model.net.config.mos
        return experts

    def supernet_command(self, folder: Path, experts: MoSConfig, changes: Mapping[str, str]) -> list[str]:
        """The same trainer, for a supernet with these experts."""
        from timm_ext.studied.standalone import supernet_settings

        return [*_train(), *supernet_settings(self._origin(), experts, folder, changes)]

    def trained_supernet(self, folder: Path) -> Any:
        """That one, from the file that is named as this one's, or after the last epoch, on the very images."""
        own = folder / self.path.name
        return self._on_its_images(own if own.exists() else folder / _LAST)


def _train() -> tuple[str, ...]:
    return sys.executable, "-m", "timm_ext.train"
