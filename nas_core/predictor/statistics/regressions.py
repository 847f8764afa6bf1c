"""Regressions on graph statistics: Gaussian process, boosted trees (LightGBM), and an additive model of counts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.device import pinned_threads
from nas_core.errors import DataError
from nas_core.predictor.targets import TargetScale

Array = NDArray[np.float64]
CLIP = 5.0  # maximum absolute value of standardised statistics
# factor for exp(-d² / 2) as a power of 2; torch's exp2 is faster than exp on most processors
LOG2_FACTOR = -0.5 / math.log(2)
ROWS, POINTS = 2048, 256  # graphs and training points of a kernel block


def tensors_of(model: Any) -> dict[str, Tensor]:
    return {field.name: getattr(model, field.name) for field in fields(model)}


STEPS, RATE = 150, 0.05
MAX_FIT_GRAPHS = 600  # maximum number of training graphs for the fit of length scales
MAX_POINTS = 5000  # maximum number of training graphs for predictions; of more, a random subset
PRIOR = 4.0  # precision of the normal prior on logarithms of length scales
NOISE = 1e-6


@dataclass(frozen=True)
class GaussianProcess:
    """Gaussian process with a squared exponential plus linear kernel and a length scale per statistic.

    The fit maximises the marginal likelihood (Rasmussen and Williams 2006, 5.1).
    """

    mean: Tensor
    """``(F,)`` mean of the statistics"""
    deviation: Tensor
    """``(F,)`` standard deviation; infinite for constant statistics"""
    rates: Tensor
    """``(F,)`` 1 / length scale of the standardised statistics"""
    variances: Tensor
    """``(3,)`` variances of the squared exponential part, of the linear part, and of the noise"""
    points: Tensor
    """``(G, F)`` scaled training statistics, at most :data:`MAX_POINTS` graphs"""
    weights: Tensor
    """``(G,)`` weights of the training points"""

    @classmethod
    def fit(cls, statistics: Array, targets: Array, seed: int = 0) -> GaussianProcess:
        """Fit statistics ``(G, F)`` to targets ``(G,)`` with mean about 0 and variance about 1."""
        values, standard_targets = (
            torch.from_numpy(np.asarray(statistics, np.float64)),
            torch.from_numpy(np.asarray(targets, np.float64)),
        )
        mean, deviation = values.mean(0), values.std(0, unbiased=False)
        varies = deviation > 1e-9
        if not bool(varies.any()):
            raise DataError("all graphs have equal statistics; give graphs that differ")
        deviation = torch.where(varies, deviation, torch.inf)
        standard = ((values - mean) / deviation).clamp(-CLIP, CLIP)
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(standard)))
        subset = order[:MAX_FIT_GRAPHS]
        rates, variances = _fit_kernel(standard[subset], standard_targets[subset], int(varies.sum()))
        if len(order) > MAX_POINTS:
            standard, standard_targets = standard[order[:MAX_POINTS]], standard_targets[order[:MAX_POINTS]]
        # Rows, as a file restores them: products of columns differ in the last bit on some processors.
        points = (standard * rates).contiguous()
        kernel = _kernel(points, variances)
        weights = torch.cholesky_solve(standard_targets[:, None], torch.linalg.cholesky(kernel))[:, 0]
        return cls(mean, deviation, rates, variances, points, weights)

    def predict(self, statistics: Array) -> Array:
        """Return posterior means ``(B,)`` from statistics ``(B, F)``."""
        means: Array = KernelSums.of([self], [torch.arange(len(self.mean))])(statistics)[0]
        return means


def _kernel(points: Tensor, variances: Tensor) -> Tensor:
    inner = points @ points.T
    kernel = _rbf(points, inner).mul_(variances[0]).add_(inner.mul_(variances[1]))
    kernel.diagonal().add_(variances[2])
    return kernel


def _rbf(points: Tensor, inner: Tensor) -> Tensor:
    lengths = points.square().sum(1)
    distances = (lengths[:, None] + lengths).sub_(inner, alpha=2).clamp_(min=0)
    return distances.mul_(LOG2_FACTOR).exp2_()


@torch.no_grad()
def _fit_kernel(points: Tensor, targets: Tensor, varying: int) -> tuple[Tensor, Tensor]:
    """Return maximum-likelihood rates ``(F,)`` and variances ``(3,)``, by Adam."""
    init = -0.5 * math.log(varying)
    first = torch.tensor([1.0, 0.3, 0.1], dtype=torch.float64).log()
    logarithms = torch.cat([torch.full((points.shape[1],), init, dtype=torch.float64), first])
    optimizer = torch.optim.Adam([logarithms], lr=RATE)
    # On matrices this small, several threads make a step 4 to 15 times as slow on a busy machine.
    with pinned_threads(1):
        for _ in range(STEPS):
            logarithms.grad = _gradient(points, targets, logarithms.exp())
            logarithms.grad[:-3] += PRIOR * (logarithms[:-3] - init)
            optimizer.step()
    variances = logarithms[-3:].exp()
    variances[2] += NOISE
    return logarithms[:-3].exp(), variances


def _gradient(points: Tensor, targets: Tensor, values: Tensor) -> Tensor:
    """Return derivatives ``(F + 3,)`` of the negative log likelihood (Rasmussen and Williams, equation 5.9)."""
    rates, (rbf, linear, noise) = values[:-3], values[-3:]
    scaled = points * rates
    inner = scaled @ scaled.T
    rbf_kernel = _rbf(scaled, inner)
    kernel = rbf_kernel * rbf + inner * linear
    kernel.diagonal().add_(noise + NOISE)
    factor = torch.linalg.cholesky(kernel)
    weights = torch.cholesky_solve(targets[:, None], factor)
    grad_kernel = torch.cholesky_inverse(factor).mT.sub_(weights @ weights.T).mul_(0.5)
    grad_linear = linear * (grad_kernel * inner).sum()
    grad_noise = noise * grad_kernel.diagonal().sum()
    rbf_kernel *= grad_kernel
    grad_rbf = rbf * rbf_kernel.sum()
    rbf_kernel *= rbf
    pairs = grad_kernel.mul_(linear).add_(rbf_kernel)
    grad_rates = 2 * (scaled * (pairs @ scaled)).sum(0) - 2 * rbf_kernel.sum(1) @ scaled.square()
    return torch.cat([grad_rates, torch.stack([grad_rbf, grad_linear, grad_noise])])


@dataclass(frozen=True)
class KernelSums:
    """Posterior means of P Gaussian processes, each with G training points and F statistics, computed together."""

    columns: Tensor
    """``(P F,)`` columns of the statistics of each process"""
    mean: Tensor
    """``(P F,)``"""
    factor: Tensor
    """``(P F,)`` 1 / deviation"""
    rates: Tensor
    """``(P F,)`` 1 / length scale"""
    points: Tensor
    """``(P, F + 2, G)`` float32: scaled points, then 1, then their scaled squared length"""
    weights: Tensor
    """``(P, G, 1)`` float32, for the squared exponential kernels"""
    slopes: Tensor
    """``(P, F, 1)`` float32, for the sum of the linear kernels"""

    @classmethod
    @torch.no_grad()
    def of(cls, processes: Sequence[GaussianProcess], columns: Sequence[Tensor]) -> KernelSums:
        """Join Gaussian processes of equal shapes, each with the indices ``(F,)`` of the statistics that it uses."""
        points = torch.stack([process.points for process in processes]).mT
        ones, lengths = torch.ones_like(points[:, :1]), points.square().sum(1, keepdim=True) * LOG2_FACTOR
        variances = torch.stack([process.variances for process in processes])
        weights = torch.stack([process.weights for process in processes])[..., None]
        return cls(
            torch.cat(list(columns)),
            torch.cat([process.mean for process in processes]),
            1 / torch.cat([process.deviation for process in processes]),
            torch.cat([process.rates for process in processes]),
            torch.cat([points * (-2 * LOG2_FACTOR), ones, lengths], 1).float().contiguous(),
            (variances[:, 0, None, None] * weights).float(),
            (variances[:, 1, None, None] * (points @ weights)).float(),
        )

    @torch.inference_mode()
    def __call__(self, statistics: Array) -> Array:
        means = np.empty((len(self.points), len(statistics)))
        for start in range(0, len(statistics), ROWS):
            means[:, start : start + ROWS] = self._means(torch.from_numpy(statistics[start : start + ROWS])).numpy()
        return means

    def _means(self, statistics: Tensor) -> Tensor:
        values = statistics[:, self.columns].sub_(self.mean).mul_(self.factor).clamp_(-CLIP, CLIP).mul_(self.rates)
        scaled = values.view(len(values), len(self.points), -1).transpose(0, 1).float()
        lengths = scaled.square().sum(-1, keepdim=True) * LOG2_FACTOR
        inputs = torch.cat([scaled, lengths, torch.ones_like(lengths)], -1)
        if inputs.shape[1] * self.points.shape[-1] <= ROWS * POINTS:  # few graphs: all processes at once
            return (torch.bmm(inputs, self.points).exp2_() @ self.weights + scaled @ self.slopes)[..., 0]
        return torch.stack([self._sums(i, inputs[i]) + (scaled[i] @ self.slopes[i])[:, 0] for i in range(len(scaled))])

    def _sums(self, process: int, inputs: Tensor) -> Tensor:
        count = self.points.shape[-1]
        total = torch.zeros(len(inputs), 1)
        for start in range(0, count, POINTS):
            block = slice(start, start + POINTS)
            total.addmm_((inputs @ self.points[process, :, block]).exp2_(), self.weights[process, block])
        return total[:, 0]


ROUNDS = 200
_NUMBERED = re.compile(r"^Tree=\d+\n", re.MULTILINE)
TREE_SETTINGS = {
    "objective": "l2",
    "learning_rate": 0.05,
    "feature_fraction_bynode": 0.3,  # many statistics are nearly equal
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "min_data_in_leaf": 5,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,  # a hundred graphs are too few for more
    "verbose": -1,
}
"""Settings of LightGBM, chosen on validation accuracies of NAS-Bench-101 and -201."""


@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees of LightGBM, as text in LightGBM's format."""

    text: str

    @classmethod
    def fit(
        cls, statistics: Array, targets: Array, seed: int = 0, weights: Array | None = None, **changes: Any
    ) -> BoostedTrees:
        """Fit statistics ``(G, F)`` to targets ``(G,)``.

        Args:
            weights: ``(G,)`` weight of each graph.
            changes: changes of :data:`TREE_SETTINGS`, by LightGBM's names.
        """
        import lightgbm  # takes a second where scikit-learn is installed

        data = lightgbm.Dataset(statistics, targets, weight=weights, free_raw_data=True)
        return cls(lightgbm.train({**TREE_SETTINGS, "seed": seed, **changes}, data, ROUNDS).model_to_string())

    @cached_property
    def booster(self) -> Any:
        import lightgbm

        return lightgbm.Booster(model_str=self.text)

    def predict(self, statistics: Array) -> Array:
        """Return predictions ``(B,)`` from statistics ``(B, F)``, with torch's number of threads."""
        if not len(statistics):
            return np.zeros(0)
        return np.asarray(self.booster.predict(statistics, num_threads=torch.get_num_threads()), np.float64)

    def to_tensor(self) -> Tensor:
        return torch.frombuffer(bytearray(self.text.encode()), dtype=torch.uint8)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> BoostedTrees:
        return cls(tensor.numpy().tobytes().decode())


class Forest:
    """Several boosted models joined into one, which is faster for few graphs."""

    def __init__(self, models: Sequence[BoostedTrees]) -> None:
        import lightgbm

        heads, bodies, tails = zip(*(_parts(model.text) for model in models), strict=True)
        numbers = itertools.count()
        trees = _NUMBERED.sub(lambda _: f"Tree={next(numbers)}\n", "".join(bodies))
        head = re.sub(r"^tree_sizes=.*\n", "", heads[0], flags=re.MULTILINE)  # without them it reads tree after tree
        self._booster, self._models = lightgbm.Booster(model_str=head + trees + tails[0]), len(models)

    def predict(self, statistics: Array) -> Array:
        """Return the mean prediction ``(B,)`` of the models from statistics ``(B, F)``."""
        return np.asarray(self._booster.predict(statistics, num_threads=1), np.float64) / self._models


def _parts(text: str) -> tuple[str, str, str]:
    first, last = text.index("\nTree=0\n") + 1, text.index("end of trees")
    return text[:first], text[first:last], text[last:]


PENALTIES = np.logspace(-6, 4, 41)  # ridge penalties, relative to the mean square of the columns
SHARPNESS = 0.25  # exponent of the errors in the weights of candidate regressions, per graph
# Chosen on latencies of 10 and 50 graphs on four devices of NAS-Bench-201 and seven of FBNet.
MIN_FRACTION = 1 / 3  # minimum prediction for positive targets, as a fraction of the smallest target


@dataclass(frozen=True)
class Additive:
    """Mean of ridge regressions on counts of operations, in the units of the targets."""

    weights: Tensor
    """``(F,)``"""
    offset: Tensor
    """``()``"""
    least: Tensor
    """``()`` lower bound of predictions"""
    points: Tensor
    """``(2, P)`` points of the :class:`TargetScale`; P is 0 for the identity"""

    @classmethod
    def fit(cls, counts: Array, learned: Array, scale: TargetScale, first: int = 0) -> tuple[Additive, Array]:
        """Fit counts ``(G, F)`` to scaled targets ``(G,)``; return the model and leave-one-out predictions ``(G,)``.

        The regressions differ in penalty, columns, and error (absolute or relative). Their weights decrease with their
        leave-one-out errors (Golub, Heath and Wahba 1979). Graphs of equal counts are held out together.

        Args:
            first: if above 0, also fit regressions to only the first ``first`` columns and to only the others.
        """
        targets = scale.inverse_transform(learned)
        positive = bool(targets.min() > 0)
        minimum = MIN_FRACTION * float(targets.min()) if positive else -np.inf
        units = targets if positive else np.ones(len(targets))
        candidates = [
            _fit_columns(counts, columns, targets, squares)
            for columns in _columns(counts.shape[1], first)
            for squares in [np.ones(len(targets))] + ([targets**-2.0] if positive else [])
        ]
        errors = np.array([np.mean(np.abs(leave_one_out - targets) / units) for _, _, leave_one_out in candidates])
        shares = _shares(errors, SHARPNESS * len(np.unique(counts, axis=0)))
        weights, offset, leave_one_out = (
            sum(s * c[i] for s, c in zip(shares, candidates, strict=True)) for i in range(3)
        )
        constant, bound = (torch.tensor(float(value), dtype=torch.float64) for value in (offset, minimum))
        points = torch.tensor([scale.targets, scale.learned], dtype=torch.float64)
        return cls(torch.from_numpy(weights), constant, bound, points), scale.transform(
            np.maximum(leave_one_out, minimum)
        )

    def predict(self, counts: Array) -> Array:
        """Return predicted scaled targets ``(B,)`` from counts ``(B, F)``."""
        values = np.maximum(counts @ self.weights.numpy() + float(self.offset), float(self.least))
        return TargetScale.from_json(self.points.tolist()).transform(values)


def _columns(count: int, first: int) -> list[slice]:
    all_columns = slice(0, count)
    return [all_columns, slice(0, first), slice(first, count)] if 0 < first < count else [all_columns]


def _shares(errors: Array, exponent: float) -> Array:
    logarithms = -exponent * np.log(np.maximum(errors, 1e-9 * max(float(errors.max()), 1e-300)))
    shares = np.exp(logarithms - logarithms.max())
    return np.asarray(shares / shares.sum())


def _fit_columns(counts: Array, columns: slice, targets: Array, squares: Array) -> tuple[Array, float, Array]:
    weights, offset, leave_one_out = mean_ridge(counts[:, columns], targets, squares)
    expanded = np.zeros(counts.shape[1])
    expanded[columns] = weights
    return expanded, offset, leave_one_out


def mean_ridge(inputs: Array, targets: Array, squares: Array | None = None) -> tuple[Array, float, Array]:
    """Fit a weighted mean of ridge regressions with all :data:`PENALTIES`.

    Args:
        squares: ``(G,)`` weights of the squared errors; None: equal weights.

    Returns:
        Weights ``(F,)``, offset and leave-one-out predictions ``(G,)``.
    """
    weights, offsets, leave_one_out, errors = ridge_path(
        inputs, targets, np.ones(len(targets)) if squares is None else squares
    )
    shares = _shares(errors, len(np.unique(inputs, axis=0)) / 2)
    return shares @ weights, float(shares @ offsets), shares @ leave_one_out


def ridge_path(counts: Array, targets: Array, squares: Array) -> tuple[Array, Array, Array, Array]:
    """Fit a ridge regression for each of :data:`PENALTIES`.

    Args:
        squares: ``(G,)`` weights of the squared errors.

    Returns:
        Weights ``(P, F)``, offsets ``(P,)``, leave-one-out predictions ``(P, G)`` and sums of squared errors ``(P,)``.
    """
    distinct, inverse = np.unique(counts, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    sums = np.bincount(inverse, squares)
    means, share = np.bincount(inverse, squares * targets) / sums, sums / sums.sum()
    center, mean, roots = share @ distinct, float(share @ means), np.sqrt(share)
    left, singular, right = np.linalg.svd((distinct - center) * roots[:, None], full_matrices=False)
    centered, penalties = (means - mean) * roots, PENALTIES * (float((singular**2).sum()) / counts.shape[1] or 1.0)
    inner, shrinkage = left.T @ centered, singular**2 / (singular**2 + penalties[:, None])
    free = np.maximum(1 - shrinkage @ (left**2).T - share, 1e-9)
    residuals = (centered - (shrinkage * inner) @ left.T) / free
    weights = (singular / (singular**2 + penalties[:, None]) * inner) @ right
    leave_one_out = (means - residuals / roots)[:, inverse]
    return weights, mean - weights @ center, leave_one_out, (residuals**2).sum(1)
