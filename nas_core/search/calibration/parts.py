"""Three linear models of quality, and their mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import TargetScale

Array = NDArray[np.float64]
PARTS = ("inherited", "sizes", "both")
"""Line through the inherited metric, ridge regression on sizes, ridge regression on both."""
PENALTIES = np.logspace(-1.5, 1, 11)
"""Ridge penalties, in mean squares of all columns together (about 1)."""
FREE = 10.0
"""Scale of a column with almost no penalty."""
FEWEST = 3
"""Smallest number of trained networks for a fit."""


@dataclass(frozen=True)
class Line:
    """Linear function of columns."""

    weights: Array
    """``(C,)``"""
    offset: float

    def of(self, columns: Array) -> Array:
        """Return values ``(B,)`` at columns ``(B, C)``."""
        return columns @ self.weights + self.offset

    @classmethod
    def rising(cls, column: Array, targets: Array) -> Line:
        """Return the least squares line through one column ``(n, 1)``, with slope >= 0."""
        x, y = column[:, 0] - column.mean(), targets - targets.mean()
        slope = max(float(x @ y) / float(x @ x), 0.0) if float(x @ x) > 0 else 0.0
        return cls(np.array([slope]), float(targets.mean() - slope * column.mean()))

    @classmethod
    def ridge(cls, columns: Array, targets: Array) -> Line:
        """Return a ridge regression averaged over penalties by marginal likelihood (MacKay 1992), from one SVD."""
        middle, mean = columns.mean(0), float(targets.mean())
        basis, singular, rows = np.linalg.svd(columns - middle, full_matrices=False)
        off = targets - mean
        inner, squares = basis.T @ off, singular**2
        residual = max(float(off @ off - inner @ inner), 0.0)
        likely, solutions = [], []
        for penalty in PENALTIES:
            misfit = float((inner**2 * penalty / (squares + penalty)).sum()) + residual
            likely.append(-0.5 * np.log1p(squares / penalty).sum() - 0.5 * (len(off) - 1) * np.log(max(misfit, 1e-300)))
            solutions.append(rows.T @ (singular / (squares + penalty) * inner))
        shares = np.exp(np.array(likely) - max(likely))
        weights = shares / shares.sum() @ np.array(solutions)
        return cls(weights, mean - float(middle @ weights))


@dataclass(frozen=True)
class Inherited:
    """Scale of the inherited metrics of each supernet and of their mean."""

    middle: Array
    """``(S,)``"""
    deviation: Array
    """``(S,)``"""
    together: float
    """Standard deviation of the mean over supernets"""

    @classmethod
    def scaled(cls, inherited: Array) -> Inherited:
        """Return the scale of inherited metrics ``(n, S)``, larger is better."""
        deviation = _usable(inherited.std(0))
        middle = inherited.mean(0)
        mean = ((inherited - middle) / deviation).mean(1)
        return cls(middle, deviation, float(_usable(np.array([mean.std()]))[0]))

    def columns(self, inherited: Array) -> tuple[Array, Array]:
        """Return the mean ``(B, 1)`` and the single columns ``(B, S)``, or ``(B, 0)`` for one supernet."""
        standard = (inherited - self.middle) / self.deviation
        mean = standard.mean(1, keepdims=True)
        count = standard.shape[1]
        return mean / self.together, (standard / np.sqrt(count))[:, : count if count > 1 else 0]


def _usable(deviation: Array) -> Array:
    return np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class Parts:
    """Three models, fitted to the same networks."""

    inherited: Inherited
    lines: tuple[Line, Line, Line]
    """In the order of :data:`PARTS`"""

    @classmethod
    def fit(cls, inherited: Array, sizes: Array, targets: Array) -> Parts:
        """Fit inherited metrics ``(n, S)`` and sizes ``(n, C)`` to targets ``(n,)``, larger metrics being better."""
        scale = Inherited.scaled(inherited)
        mean, single = scale.columns(inherited)
        features = np.hstack([FREE * mean, single, sizes])
        return cls(scale, (Line.rising(mean, targets), Line.ridge(sizes, targets), Line.ridge(features, targets)))

    def predict(self, inherited: Array, sizes: Array) -> Array:
        """Return estimates ``(3, B)``."""
        mean, single = self.inherited.columns(inherited)
        columns = (mean, sizes, np.hstack([FREE * mean, single, sizes]))
        return np.stack([line.of(values) for line, values in zip(self.lines, columns, strict=True)])

    @staticmethod
    def left_out(inherited: Array, sizes: Array, targets: Array) -> Array:
        """Return leave-one-out estimates ``(3, n)``."""
        places = np.arange(len(targets))
        estimates = np.empty((len(PARTS), len(targets)))
        for place in places:
            others = places != place
            parts = Parts.fit(inherited[others], sizes[others], targets[others])
            estimates[:, place] = parts.predict(inherited[[place]], sizes[[place]])[:, 0]
        return estimates


@dataclass(frozen=True)
class Learned:
    """Fitted state of a calibration."""

    parts: Parts
    mixture: Mixture
    scale: TargetScale
    """Scale between mixture and targets, larger is better"""

    @classmethod
    def of(cls, inherited: Array, sizes: Array, targets: Array) -> Learned:
        """Fit trained networks, with weights and standard deviations from leave-one-out estimates."""
        scale = TargetScale.fitted("mean", targets)
        held_out = scale.learn(Parts.left_out(inherited, sizes, targets))
        learned = scale.learn(targets)
        squares = ((held_out - learned) ** 2).sum(1)
        inverse = 1 / np.maximum(squares + FEWEST * squares.mean() / len(targets), 1e-12)
        mixture = Mixture.fit(held_out, learned, targets, scale, (inverse / inverse.sum()).tolist())
        return cls(Parts.fit(inherited, sizes, targets), mixture, scale)

    def estimate(self, inherited: Array, sizes: Array) -> tuple[Array, Array]:
        """Return estimates and standard deviations ``(B,)``."""
        return self.mixture.combine(self.scale.learn(self.parts.predict(inherited, sizes)), self.scale)
