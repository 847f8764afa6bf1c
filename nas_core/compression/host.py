"""Interface of host frameworks for compression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from nas_core.models.workload import Workload
from nas_core.space import Architecture
from nas_core.supernet.elastic.conversion import Trained


class Compressible(Trained, Protocol):
    """Trained network of a host framework for :func:`nas_core.compression.compress`.

    A static network is a model of the host whose attribute ``net`` is a network of :mod:`nas_core.models`.
    """

    metric: str
    """Metric to report besides the loss, in percent, larger is better: ``top1``, ``accuracy`` or ``agreement``."""
    multiples: Mapping[str, int]
    """Divisors of reduced sizes, see :func:`nas_core.compression.candidates.pruned`."""

    @property
    def original(self) -> nn.Module:
        """The host framework's own trained model."""

    def static(self, architecture: Architecture) -> Any:
        """Return a static network with the trained weights of an architecture; it may lie outside the search space."""

    def logits(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """Return logits (N, V) and targets (N,) of a batch without padding, by a static network or the original."""

    def distance(self, model: nn.Module, teacher: nn.Module, batch: Any) -> Tensor | None:
        """Return a loss between static networks that replaces the losses on logits, or None."""

    def agreement(self, model: nn.Module, batches: Sequence[Any]) -> dict[str, float] | None:
        """Return ``loss`` and percentages of a network without logits, compared with the trained one; else None."""

    def token_masks(self, batch: Any) -> Mapping[str, Tensor]:
        """Return side (encoder, decoder) -> mask (B, T), True at tokens; sides without padding are absent."""

    def training_batches(self, batch_size: int, seed: int) -> Iterator[Any]:
        """Yield training batches without end."""

    def held_out(self, count: int) -> Sequence[Any]:
        """Return at least two batches with up to ``count`` random validation samples, equal in each call."""

    def workload(self, model: nn.Module, batch: int) -> Workload:
        """Return the forward pass to time, on ``batch`` samples, for a static network or the original model."""

    def save_static(self, path: Path, model: nn.Module, kept: Mapping[str, Sequence[int]]) -> int:
        """Write a static network as a host checkpoint; return its number of parameters.

        Args:
            kept: side -> indices of the kept layers of the trained network.
        """
