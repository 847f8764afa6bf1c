"""What Gaussian processes predict: sums of kernels to their points, for many graphs and many processes at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["CLIP", "HALVES", "KernelSums"]

Array = NDArray[np.float64]
CLIP = 5.0
"""Standardised statistics are clipped to +-this, so that a network unlike all others is no infinity away."""
HALVES = -0.5 / math.log(2)
"""exp(-d² / 2) is 2 to the power of this times d²; torch's exp2 takes a third of the time of its exp where the
processor is not Intel's."""
ROWS, POINTS = 2048, 256
"""Graphs and points between which kernels are computed at once: 2 MiB, about a second-level cache."""


@dataclass(frozen=True)
class KernelSums:
    """P processes of G points and F statistics each. Statistics are standardised in float64; kernels are computed in
    float32, as products that hold the whole exponent."""

    columns: Tensor
    """``(P F,)`` which statistic each process reads"""
    mean: Tensor
    """``(P F,)``"""
    factor: Tensor
    """``(P F,)`` 1 / deviation"""
    rates: Tensor
    """``(P F,)`` 1 / length scale"""
    points: Tensor
    """``(P, F + 2, G)`` float32: points times -2 :data:`HALVES`, then 1, then their squared length times it"""
    weights: Tensor
    """``(P, G, 1)`` float32, of the squared exponential kernels"""
    slopes: Tensor
    """``(P, F, 1)`` float32, of the linear kernels' sum, which is linear"""

    @classmethod
    @torch.no_grad()
    def of(cls, processes: Sequence[Mapping[str, Tensor]], columns: Sequence[Tensor]) -> KernelSums:
        """From the tensors of processes, all of equal shapes, and the statistics that each reads, ``(F,)``."""
        points = torch.stack([each["points"] for each in processes]).mT
        ones, lengths = torch.ones_like(points[:, :1]), points.square().sum(1, keepdim=True) * HALVES
        variances = torch.stack([each["variances"] for each in processes])
        weights = torch.stack([each["weights"] for each in processes])[..., None]
        flat = {name: torch.cat([each[name] for each in processes]) for name in ("mean", "deviation", "rates")}
        return cls(
            torch.cat(list(columns)),
            flat["mean"],
            1 / flat["deviation"],
            flat["rates"],
            torch.cat([points * (-2 * HALVES), ones, lengths], 1).float().contiguous(),
            (variances[:, 0, None, None] * weights).float(),
            (variances[:, 1, None, None] * (points @ weights)).float(),
        )

    @torch.inference_mode()
    def __call__(self, statistics: Array) -> Array:
        """Posterior means ``(P, B)`` from statistics ``(B, all)``."""
        found = np.empty((len(self.points), len(statistics)))
        for start in range(0, len(statistics), ROWS):
            means = self._means(torch.from_numpy(statistics[start : start + ROWS]))
            found[:, start : start + ROWS] = means.numpy()
        return found

    def _means(self, statistics: Tensor) -> Tensor:
        """``(P, B)``."""
        scaled = self._scaled(statistics)
        lengths = scaled.square().sum(-1, keepdim=True) * HALVES
        whole = torch.cat([scaled, lengths, torch.ones_like(lengths)], -1)
        if whole.shape[1] * self.points.shape[-1] <= ROWS * POINTS:  # few graphs: all processes at once
            return (torch.bmm(whole, self.points).exp2_() @ self.weights + scaled @ self.slopes)[..., 0]
        return torch.stack([self._sums(i, whole[i]) + (scaled[i] @ self.slopes[i])[:, 0] for i in range(len(scaled))])

    def _scaled(self, statistics: Tensor) -> Tensor:
        """``(P, B, F)`` float32: what kernels compare."""
        values = statistics[:, self.columns].sub_(self.mean).mul_(self.factor).clamp_(-CLIP, CLIP).mul_(self.rates)
        return values.view(len(values), len(self.points), -1).transpose(0, 1).float()

    def _sums(self, process: int, whole: Tensor) -> Tensor:
        """``(B,)`` sums of squared exponentials of one process, block after block of its points."""
        count = self.points.shape[-1]
        total = torch.zeros(len(whole), 1)
        for start in range(0, count, POINTS):
            part = slice(start, start + POINTS)
            total.addmm_((whole @ self.points[process, :, part]).exp2_(), self.weights[process, part])
        return total[:, 0]
