"""Weighted average of several models, fitted to out-of-fold predictions (stacking, Wolpert 1992)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.targets import TargetScale

Array = NDArray[np.float64]
FOLDS, MORE_FOLDS, FEW_GRAPHS = 5, 10, 60  # folds, folds for few graphs, largest number of graphs that are few
PRIOR_GRAPHS = 60.0  # number of graphs for which the prior weights count in the fit
EPS = 1e-6
COVERAGE = 0.683
SINGLE_WEIGHT = 0.85  # weight of the coverage at one standard deviation, relative to that at two
GRID = np.linspace(0.0, 4.0, 41)


def fold_of(graphs: Graphs, seed: int) -> NDArray[np.int64]:
    """Return a random fold for each graph ``(G,)``. Equal graphs have the same fold."""
    inverse = graphs.distinct()[1]
    distinct = int(inverse.max()) + 1
    count = MORE_FOLDS if distinct <= FEW_GRAPHS else FOLDS
    return (np.random.default_rng([seed, 5]).permutation(distinct) % min(count, distinct))[inverse]


@dataclass(frozen=True)
class Mixture:
    """Weighted average of models, with a standard deviation."""

    shares: tuple[float, ...]
    """Weight of each model, with sum 1"""
    noise: float
    """Standard deviation if all models agree, in scaled units"""
    disagreement: float
    """Factor of the standard deviation between the models; variances are added"""
    factor: float
    """Calibration factor of the standard deviation"""

    @classmethod
    def fit(
        cls, held_out: Array, learned: Array, targets: Array, scale: TargetScale, prior: Sequence[float]
    ) -> Mixture:
        """Fit weights and standard deviation to out-of-fold predictions.

        Args:
            held_out: ``(P, G)`` out-of-fold predictions of P models, scaled.
            learned: ``(G,)`` scaled targets.
            targets: ``(G,)`` targets.
            prior: ``(P,)`` prior weights.
        """
        shares = _fit_shares(held_out, learned, np.asarray(prior, np.float64))
        mean, between = shares @ held_out, _variance_between(held_out, shares)
        noise, disagreement = _fit_noise(learned - mean, between)
        mixture = cls(tuple(shares.tolist()), noise, disagreement, 1.0)
        predicted, deviation = mixture.combine(held_out, scale)
        return cls(mixture.shares, noise, disagreement, calibration_factor(np.abs(targets - predicted) / deviation))

    def combine(self, rows: Array, scale: TargetScale) -> tuple[Array, Array]:
        """Average scaled predictions ``(P, B)``; return mean and standard deviation ``(B,)``, in units of targets."""
        shares = np.array(self.shares)
        mean = shares @ rows
        deviation = np.sqrt(self.noise**2 + self.disagreement**2 * _variance_between(rows, shares))
        width = scale.inverse_transform(mean + deviation) - scale.inverse_transform(mean - deviation)
        return scale.inverse_transform(mean), self.factor * width / 2

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "shares": list(self.shares)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], models: int) -> Mixture:
        shares = tuple(data["shares"])
        if len(shares) != models:
            raise DataError(f"the predictor has {len(shares)} weights for {models} models; train it again")
        return cls(shares, *(float(data[name]) for name in ("noise", "disagreement", "factor")))


def _fit_shares(held_out: Array, learned: Array, prior: Array) -> Array:
    from scipy.optimize import nnls

    if len(held_out) == 1:
        return np.ones(1)
    weight = np.sqrt(PRIOR_GRAPHS * max(float(held_out.var(0).mean()), EPS**2))
    large = 1e3 * float(np.abs(held_out).sum() + 1)
    rows = np.concatenate([held_out.T, weight * np.eye(len(prior)), large * np.ones((1, len(prior)))])
    shares, _ = nnls(rows, np.concatenate([learned, weight * prior, [large]]))
    return np.asarray(shares / shares.sum())


def _variance_between(rows: Array, shares: Array) -> Array:
    return np.asarray(shares @ (rows - shares @ rows) ** 2)


def _fit_noise(errors: Array, between: Array) -> tuple[float, float]:
    """Return the maximum-likelihood noise and disagreement for normal errors."""
    lowest, best = np.inf, (0.0, 0.0)
    for disagreement in GRID:
        added = disagreement**2 * between
        noise2 = float(np.mean(errors**2))
        for _ in range(30):  # fixed point for the noise
            weights = 1 / (noise2 + added + EPS**2) ** 2
            noise2 = max(float((weights * (errors**2 - added)).sum() / weights.sum()), EPS**2)
        variance = noise2 + added
        loss = float((errors**2 / variance + np.log(variance)).sum())
        if loss < lowest:
            lowest, best = loss, (float(np.sqrt(noise2)), float(disagreement))
    return best


def calibration_factor(errors: Array) -> float:
    """Return the factor for standard deviations after which 68 % of errors are within one of them, 95.5 % within two.

    Args:
        errors: ``(G,)`` absolute errors divided by the standard deviation.
    """
    count = len(errors)
    single = np.quantile(errors, min(COVERAGE * (count + 1) / count, 1.0))
    double = np.quantile(errors, min(0.955 * (count + 1) / count, 1.0)) / 2
    return float(max(single**SINGLE_WEIGHT * double ** (1 - SINGLE_WEIGHT), EPS))
