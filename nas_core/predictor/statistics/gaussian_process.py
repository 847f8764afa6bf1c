"""Gaussian process regression on graph statistics: the part of an architecture's quality that a hundred measurements
already determine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError

__all__ = ["GaussianProcess"]

Array = NDArray[np.float64]
STEPS, RATE = 150, 0.05
LARGEST = 600
"""Points from which length scales are learned."""
MOST = 5000
"""Points that predict, a random subset of more: their kernel takes 8 bytes times the square of their number."""
PRIOR = 4.0
"""Precision of the normal prior on the logarithms of length scales, about that of the root of their number."""
CLIP = 5.0
"""Standardised statistics are clipped to +-this, so that a network unlike all others is no infinity away."""


@dataclass(frozen=True)
class GaussianProcess:
    """Squared exponential plus linear kernel with a length scale per statistic (Rasmussen and Williams 2006, 5.1), by
    maximum marginal likelihood. :meth:`fit` makes one; the fields are all it needs to predict."""

    mean: Tensor
    """``(F,)`` of the statistics"""
    deviation: Tensor
    """``(F,)``; infinite for what never varies"""
    rates: Tensor
    """``(F,)`` 1 / length scale of the standardised statistics"""
    variances: Tensor
    """``(3,)`` of the squared exponential part, of the linear part, and of the noise"""
    points: Tensor
    """``(G, F)`` scaled training statistics, of :data:`MOST` graphs at most"""
    weights: Tensor
    """``(G,)`` of the training points"""

    @classmethod
    def fit(cls, statistics: Array, targets: Array, seed: int = 0) -> GaussianProcess:
        """From statistics ``(G, F)`` and targets ``(G,)`` of about zero mean and unit variance.

        Raises:
            DataError: nothing varies between the graphs.
        """
        values, wanted = (
            torch.from_numpy(np.asarray(statistics, np.float64)),
            torch.from_numpy(np.asarray(targets, np.float64)),
        )
        mean, deviation = values.mean(0), values.std(0, unbiased=False)
        varies = deviation > 1e-9
        if not bool(varies.any()):
            raise DataError("all graphs have equal statistics; there is nothing to learn from them")
        deviation = torch.where(varies, deviation, torch.inf)
        standard = _standard(values, mean, deviation)
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(standard)))
        some = order[:LARGEST]
        rates, variances = _likeliest(standard[some], wanted[some], int(varies.sum()))
        if len(order) > MOST:
            standard, wanted = standard[order[:MOST]], wanted[order[:MOST]]
        # As rows, the way a file gives them back: products of columns differ in the last bit on some processors.
        points = (standard * rates).contiguous()
        kernel = _kernel(points, points, variances) + variances[2] * torch.eye(len(points), dtype=torch.float64)
        return cls(mean, deviation, rates, variances, points, torch.linalg.solve(kernel, wanted))

    @torch.no_grad()
    def predict(self, statistics: Array) -> Array:
        """Posterior means ``(B,)`` from statistics ``(B, F)``."""
        points = _standard(torch.from_numpy(statistics), self.mean, self.deviation) * self.rates
        parts = [_kernel(part, self.points, self.variances) @ self.weights for part in torch.split(points, 4096)]
        return torch.cat(parts).numpy() if len(points) else np.zeros(0)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls.__dataclass_fields__)

    def to_tensors(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in self.names()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> GaussianProcess:
        """Inverse of :meth:`to_tensors`.

        Raises:
            KeyError: one is missing.
            DataError: they do not fit together, or hold what is no number.
        """
        made = cls(**{name: tensors[name] for name in cls.names()})
        points, statistics = made.points.shape if made.points.ndim == 2 else (-1, -1)
        shapes = {"variances": (3,), "points": (points, statistics), "weights": (points,)}
        for name, tensor in made.to_tensors().items():
            fits = tensor.dtype == torch.float64 and tuple(tensor.shape) == shapes.get(name, (statistics,))
            number = bool((~tensor.isnan() if name == "deviation" else tensor.isfinite()).all())
            if not fits or not number:
                raise DataError(f"{name} of a Gaussian process does not fit the others, or holds what is no number")
        return made


def _standard(values: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return ((values - mean) / deviation).clamp(-CLIP, CLIP)


def _kernel(first: Tensor, second: Tensor, variances: Tensor) -> Tensor:
    inner = first @ second.T
    apart = (first.square().sum(1)[:, None] + second.square().sum(1) - 2 * inner).clamp(min=0)
    return variances[0] * torch.exp(-apart / 2) + variances[1] * inner


def _likeliest(points: Tensor, targets: Tensor, varying: int) -> tuple[Tensor, Tensor]:
    """Rates ``(F,)`` and variances ``(3,)`` of largest marginal likelihood, found by Adam."""
    start = -0.5 * math.log(varying)
    rates = torch.full((points.shape[1],), start, dtype=torch.float64, requires_grad=True)
    variances = torch.tensor([1.0, 0.3, 0.1], dtype=torch.float64).log().requires_grad_()
    optimizer = torch.optim.Adam([rates, variances], lr=RATE)
    itself = torch.eye(len(points), dtype=torch.float64)
    for _ in range(STEPS):
        scaled = points * rates.exp()
        kernel = _kernel(scaled, scaled, variances.exp()) + (variances[2].exp() + 1e-6) * itself
        factor = torch.linalg.cholesky(kernel)
        weights = torch.cholesky_solve(targets[:, None], factor)[:, 0]
        unlikely = 0.5 * targets @ weights + factor.diagonal().log().sum()
        loss = unlikely + 0.5 * PRIOR * (rates - start).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    variances = variances.detach().exp()
    variances[2] += 1e-6
    return rates.detach().exp(), variances
