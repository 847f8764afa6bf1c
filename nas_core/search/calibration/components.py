"""Linear models of a network's quality, and their weighted mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import DEVIATION, TargetScale

Array = NDArray[np.float64]
COMPONENTS = ("inherited", "sizes", "both")
"""Line through the supernet's metric, ridge regression on sizes, ridge regression on both."""
PENALTIES = np.logspace(-1.5, 1, 11)
"""Ridge penalties, relative to the mean square of a network's features (about 1)."""
FREE = 10.0
"""Scale of a feature that the ridge penalty hardly affects."""
MIN_NETWORKS = 3
"""Smallest number of trained networks for a fit."""
EXPECTED = DEVIATION / 3
"""Prior error of an estimate, in scaled units: a third of the standard deviation of the targets. It counts like
:data:`MIN_NETWORKS` leave-one-out errors; without it, standard deviations of few networks are too small too often."""


@dataclass(frozen=True)
class Line:
    """Linear function of C features."""

    weights: Array
    """``(C,)``"""
    offset: float

    def of(self, columns: Array) -> Array:
        """Return values ``(B,)`` for features ``(B, C)``."""
        return columns @ self.weights + self.offset

    @classmethod
    def rising(cls, column: Array, targets: Array) -> Line:
        """Return the least-squares line through one feature ``(n, 1)``, with a slope of at least 0."""
        x, y = column[:, 0] - column.mean(), targets - targets.mean()
        slope = max(float(x @ y) / float(x @ x), 0.0) if float(x @ x) > 0 else 0.0
        return cls(np.array([slope]), float(targets.mean() - slope * column.mean()))

    @classmethod
    def ridge(cls, columns: Array, targets: Array) -> Line:
        """Return a ridge regression averaged over :data:`PENALTIES`, weighted by marginal likelihood (MacKay 1992)."""
        center, mean = columns.mean(0), float(targets.mean())
        left, singular, right = np.linalg.svd(columns - center, full_matrices=False)
        centered = targets - mean
        inner, squares = left.T @ centered, singular**2
        residual = max(float(centered @ centered - inner @ inner), 0.0)
        evidence, solutions = [], []
        for penalty in PENALTIES:
            misfit = float((inner**2 * penalty / (squares + penalty)).sum()) + residual
            evidence.append(
                -0.5 * np.log1p(squares / penalty).sum() - 0.5 * (len(centered) - 1) * np.log(max(misfit, 1e-300))
            )
            solutions.append(right.T @ (singular / (squares + penalty) * inner))
        shares = np.exp(np.array(evidence) - max(evidence))
        weights = shares / shares.sum() @ np.array(solutions)
        return cls(weights, mean - float(center @ weights))


@dataclass(frozen=True)
class Inherited:
    """Standardisation of the metrics of S supernets and of their mean."""

    middle: Array
    """Means ``(S,)``"""
    deviation: Array
    """Standard deviations ``(S,)``"""
    mean_deviation: float
    """Standard deviation of the mean over supernets"""

    @classmethod
    def scaled(cls, inherited: Array) -> Inherited:
        """Fit to supernet metrics ``(n, S)``, larger is better."""
        deviation = _usable(inherited.std(0))
        middle = inherited.mean(0)
        mean = ((inherited - middle) / deviation).mean(1)
        return cls(middle, deviation, float(_usable(np.array([mean.std()]))[0]))

    def columns(self, inherited: Array) -> tuple[Array, Array]:
        """Return the standardised mean over supernets ``(B, 1)`` and, for several, each one's metric ``(B, S)``."""
        standard = (inherited - self.middle) / self.deviation
        mean = standard.mean(1, keepdims=True)
        count = standard.shape[1]
        return mean / self.mean_deviation, (standard / np.sqrt(count))[:, : count if count > 1 else 0]


def _usable(deviation: Array) -> Array:
    return np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class Components:
    """The linear models of :data:`COMPONENTS`, fitted to the same networks."""

    inherited: Inherited
    lines: tuple[Line, Line, Line]
    """Linear functions in the order of :data:`COMPONENTS`"""

    @classmethod
    def fit(cls, inherited: Array, sizes: Array, targets: Array) -> Components:
        """Fit supernet metrics ``(n, S)`` and sizes ``(n, C)`` to targets ``(n,)``; larger is better."""
        scale = Inherited.scaled(inherited)
        mean, single = scale.columns(inherited)
        features = np.hstack([FREE * mean, single, sizes])
        return cls(scale, (Line.rising(mean, targets), Line.ridge(sizes, targets), Line.ridge(features, targets)))

    def predict(self, inherited: Array, sizes: Array) -> Array:
        """Return the estimates ``(3, B)`` in the order of :data:`COMPONENTS`."""
        mean, single = self.inherited.columns(inherited)
        columns = (mean, sizes, np.hstack([FREE * mean, single, sizes]))
        return np.stack([line.of(values) for line, values in zip(self.lines, columns, strict=True)])

    @staticmethod
    def leave_one_out(inherited: Array, sizes: Array, targets: Array) -> Array:
        """Return leave-one-out estimates ``(3, n)`` in the order of :data:`COMPONENTS`."""
        indices = np.arange(len(targets))
        estimates = np.empty((len(COMPONENTS), len(targets)))
        for index in indices:
            others = indices != index
            components = Components.fit(inherited[others], sizes[others], targets[others])
            estimates[:, index] = components.predict(inherited[[index]], sizes[[index]])[:, 0]
        return estimates


@dataclass(frozen=True)
class Learned:
    """Fitted linear models of a calibration, and their weights in the estimate."""

    components: Components
    mixture: Mixture
    scale: TargetScale
    """Standardisation of the targets; larger is better"""

    @classmethod
    def of(cls, inherited: Array, sizes: Array, targets: Array) -> Learned:
        """Fit to trained networks, see :meth:`Components.fit`."""
        scale = TargetScale.fit("mean", targets)
        held_out = scale.transform(Components.leave_one_out(inherited, sizes, targets))
        learned = scale.transform(targets)
        squares = ((held_out - learned) ** 2).sum(1)
        inverse = 1 / np.maximum(squares + MIN_NETWORKS * squares.mean() / len(targets), 1e-12)
        mixture = Mixture.fit(held_out, learned, targets, scale, (inverse / inverse.sum()).tolist())
        errors = learned - mixture.shares @ held_out
        square = (errors @ errors + MIN_NETWORKS * EXPECTED**2) / (len(targets) + MIN_NETWORKS)
        mixture = replace(mixture, noise=float(np.sqrt(square)), disagreement=1.0, factor=1.0)
        return cls(Components.fit(inherited, sizes, targets), mixture, scale)

    def estimate(self, inherited: Array, sizes: Array) -> tuple[Array, Array]:
        """Return estimates ``(B,)`` and standard deviations ``(B,)``."""
        return self.mixture.combine(self.scale.transform(self.components.predict(inherited, sizes)), self.scale)
