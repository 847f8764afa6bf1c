"""Interface between compression and a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.models.workload import Workload
from nas_core.space import Architecture
from nas_core.supernet.elastic.conversion import Trained


class Compressible(Trained, Protocol):
    """Trained network of a host that :func:`nas_core.compression.compress` reads.

    A static network is a model of the host with the network of :mod:`nas_core.models` as ``net``.
    """

    metric: str
    """Larger-is-better quality next to the loss, a percentage of the targets: ``top1``, ``accuracy``."""

    @property
    def original(self) -> nn.Module:
        """The host's own trained model."""

    def static(self, architecture: Architecture) -> Any:
        """Return a new static network with the weights of an architecture, which need not be in the space."""

    def logits(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """Return logits (N, V) of a static network or of the original, and their targets (N,), without padding."""

    def counted(self, batch: Any) -> Mapping[str, Tensor]:
        """Return masks (B, T), True at tokens, by side; sides without padding are absent."""

    def training_batches(self, batch_size: int, seed: int) -> Iterator[Any]:
        """Yield training batches without end, prepared as for training."""

    def held_out(self, count: int) -> Sequence[Any]:
        """Return two or more batches of up to ``count`` random validation samples, the same each time."""

    def workload(self, model: nn.Module, batch: int) -> Workload:
        """Return the timed pass of a static network or of the original on ``batch`` samples."""

    def save_static(self, path: Path, model: nn.Module, kept: Mapping[str, Sequence[int]]) -> int:
        """Write a static network as the host's checkpoint; return its number of parameters.

        Args:
            kept: the trained network's layers in it, by side.
        """
