"""Gaussian process regression on graph statistics: the part of an architecture's quality that a hundred measurements
already determine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.device import pinned_threads
from nas_core.errors import DataError

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


STEPS, RATE = 150, 0.05
LARGEST = 600
"""Points from which length scales are learned."""
MOST = 5000
"""Points that predict, a random subset of more: their kernel takes 8 bytes times the square of their number. Fewer that
stand for all of 4,236 (Nyström, 1,536 of them) lose .003 of Kendall's tau."""
PRIOR = 4.0
"""Precision of the normal prior on the logarithms of length scales, about that of the root of their number."""
NOISE = 1e-6
"""Least variance of the noise."""


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
        standard = ((values - mean) / deviation).clamp(-CLIP, CLIP)
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(standard)))
        some = order[:LARGEST]
        rates, variances = _likeliest(standard[some], wanted[some], int(varies.sum()))
        if len(order) > MOST:
            standard, wanted = standard[order[:MOST]], wanted[order[:MOST]]
        # As rows, the way a file gives them back: products of columns differ in the last bit on some processors.
        points = (standard * rates).contiguous()
        kernel = _kernel(points, variances)
        weights = torch.cholesky_solve(wanted[:, None], torch.linalg.cholesky(kernel))[:, 0]
        return cls(mean, deviation, rates, variances, points, weights)

    def predict(self, statistics: Array) -> Array:
        """Posterior means ``(B,)`` from statistics ``(B, F)``."""
        means: Array = self._sums(statistics)[0]
        return means

    @cached_property
    def _sums(self) -> KernelSums:
        return KernelSums.of([self.to_tensors()], [torch.arange(len(self.mean))])

    def to_tensors(self) -> dict[str, Tensor]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> GaussianProcess:
        """Invert :meth:`to_tensors`."""
        return cls(**tensors)


def _kernel(points: Tensor, variances: Tensor) -> Tensor:
    """``(G, G)`` covariance of noisy values at points."""
    inner = points @ points.T
    kernel = _near(points, inner).mul_(variances[0]).add_(inner.mul_(variances[1]))
    kernel.diagonal().add_(variances[2])
    return kernel


def _near(points: Tensor, inner: Tensor) -> Tensor:
    """Squared exponentials ``(G, G)`` of distances, from the inner products of points."""
    lengths = points.square().sum(1)
    apart = (lengths[:, None] + lengths).sub_(inner, alpha=2).clamp_(min=0)
    return apart.mul_(HALVES).exp2_()


@torch.no_grad()
def _likeliest(points: Tensor, targets: Tensor, varying: int) -> tuple[Tensor, Tensor]:
    """Rates ``(F,)`` and variances ``(3,)`` of largest marginal likelihood, found by Adam."""
    start = -0.5 * math.log(varying)
    first = torch.tensor([1.0, 0.3, 0.1], dtype=torch.float64).log()
    logarithms = torch.cat([torch.full((points.shape[1],), start, dtype=torch.float64), first])
    optimizer = torch.optim.Adam([logarithms], lr=RATE)
    # Threads that wait for each other on such small matrices make a step 4 to 15 times as slow on a busy machine.
    with pinned_threads(1):
        for _ in range(STEPS):
            logarithms.grad = _gradient(points, targets, logarithms.exp())
            logarithms.grad[:-3] += PRIOR * (logarithms[:-3] - start)
            optimizer.step()
    variances = logarithms[-3:].exp()
    variances[2] += NOISE
    return logarithms[:-3].exp(), variances


def _gradient(points: Tensor, targets: Tensor, values: Tensor) -> Tensor:
    """``(F + 3,)`` derivatives of the negative logarithm of the marginal likelihood by the logarithms of rates and
    variances (Rasmussen and Williams, equation 5.9)."""
    rates, (smooth, linear, noise) = values[:-3], values[-3:]
    scaled = points * rates
    inner = scaled @ scaled.T
    near = _near(scaled, inner)
    kernel = near * smooth + inner * linear
    kernel.diagonal().add_(noise + NOISE)
    factor = torch.linalg.cholesky(kernel)
    weights = torch.cholesky_solve(targets[:, None], factor)
    by_kernel = torch.cholesky_inverse(factor).mT.sub_(weights @ weights.T).mul_(0.5)
    of_linear = linear * (by_kernel * inner).sum()
    of_noise = noise * by_kernel.diagonal().sum()
    near *= by_kernel
    of_smooth = smooth * near.sum()
    near *= smooth
    pairs = by_kernel.mul_(linear).add_(near)
    of_rates = 2 * (scaled * (pairs @ scaled)).sum(0) - 2 * near.sum(1) @ scaled.square()
    return torch.cat([of_rates, torch.stack([of_smooth, of_linear, of_noise])])
