"""Linear models of a network's quality, and their weighted mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import DEVIATION, TargetScale

Array = NDArray[np.float64]
COMPONENTS = ("inherited", "sizes", "both")
"""Line through the mean of supernets' metrics, ridge regression on sizes, ridge regression on sums of genes and on
metrics."""
PENALTIES = np.logspace(-1.5, 1, 11)
"""Ridge penalties of ``sizes``, relative to the mean square of a network's features (about 1)."""
PENALTY = 3.0
"""Ridge penalty of ``both``, for features standardised over the trained networks."""
Inputs = tuple[Array, Array, Array]
"""Supernets' metrics ``(n, S)``, standardised sizes ``(n, C + 1)`` and sums of genes ``(n, G)``, see
:class:`~nas_core.search.calibration.sizes.Sizes`"""
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
    def standardised_ridge(cls, columns: Array, targets: Array) -> Line:
        """Return a ridge regression with :data:`PENALTY` on features standardised over the trained networks."""
        center, deviation = columns.mean(0), _usable(columns.std(0))
        line = cls.ridge((columns - center) / deviation, targets, np.array([PENALTY]))
        weights = line.weights / deviation
        return cls(weights, line.offset - float(center @ weights))

    @classmethod
    def ridge(cls, columns: Array, targets: Array, penalties: Array = PENALTIES) -> Line:
        """Return a ridge regression averaged over penalties, weighted by marginal likelihood (MacKay 1992)."""
        center, mean = columns.mean(0), float(targets.mean())
        left, singular, right = np.linalg.svd(columns - center, full_matrices=False)
        centered = targets - mean
        inner, squares = left.T @ centered, singular**2
        residual = max(float(centered @ centered - inner @ inner), 0.0)
        evidence, solutions = [], []
        for penalty in penalties:
            misfit = float((inner**2 * penalty / (squares + penalty)).sum()) + residual
            evidence.append(
                -0.5 * np.log1p(squares / penalty).sum() - 0.5 * (len(centered) - 1) * np.log(max(misfit, 1e-300))
            )
            solutions.append(right.T @ (singular / (squares + penalty) * inner))
        shares = np.exp(np.array(evidence) - max(evidence))
        weights = shares / shares.sum() @ np.array(solutions)
        return cls(weights, mean - float(center @ weights))


def take(inputs: Inputs, indices: Any) -> Inputs:
    """Return the inputs of some networks."""
    inherited, sizes, sums = inputs
    return inherited[indices], sizes[indices], sums[indices]


def _usable(deviation: Array) -> Array:
    return np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class Components:
    """The linear models of :data:`COMPONENTS`, fitted to the same networks."""

    middle: Array
    """Means ``(S,)`` of supernets' metrics"""
    deviation: Array
    """Standard deviations ``(S,)``"""
    lines: tuple[Line, ...]
    """Linear functions in the order of :data:`COMPONENTS`"""

    @classmethod
    def fit(cls, inputs: Inputs, targets: Array) -> Components:
        """Fit inputs of n networks to targets ``(n,)``; larger is better."""
        components = cls(inputs[0].mean(0), _usable(inputs[0].std(0)), ())
        mean, sizes, both = components._features(inputs)
        lines = (Line.rising(mean, targets), Line.ridge(sizes, targets), Line.standardised_ridge(both, targets))
        return replace(components, lines=lines)

    def predict(self, inputs: Inputs) -> Array:
        """Return the estimates ``(3, B)`` in the order of :data:`COMPONENTS`."""
        return np.stack([line.of(columns) for line, columns in zip(self.lines, self._features(inputs), strict=True)])

    def mean(self, inherited: Array) -> Array:
        """Return the mean ``(B, 1)`` of the standardised metrics of supernets ``(B, S)``."""
        return np.asarray(((inherited - self.middle) / self.deviation).mean(1, keepdims=True))

    def _features(self, inputs: Inputs) -> tuple[Array, ...]:
        inherited, sizes, sums = inputs
        return self.mean(inherited), sizes, np.hstack([sums, inherited])

    @staticmethod
    def leave_one_out(inputs: Inputs, targets: Array) -> Array:
        """Return leave-one-out estimates ``(3, n)`` in the order of :data:`COMPONENTS`."""
        indices = np.arange(len(targets))
        estimates = np.empty((len(COMPONENTS), len(targets)))
        for index in indices:
            others = indices != index
            components = Components.fit(take(inputs, others), targets[others])
            estimates[:, index] = components.predict(take(inputs, [index]))[:, 0]
        return estimates


@dataclass(frozen=True)
class Learned:
    """Fitted linear models of a calibration, and their weights in the estimate."""

    components: Components
    mixture: Mixture
    scale: TargetScale
    """Standardisation of the targets; larger is better"""

    @classmethod
    def of(cls, inputs: Inputs, targets: Array) -> Learned:
        """Fit to trained networks, see :meth:`Components.fit`."""
        scale = TargetScale.fit("mean", targets)
        held_out = scale.transform(Components.leave_one_out(inputs, targets))
        learned = scale.transform(targets)
        squares = ((held_out - learned) ** 2).sum(1)
        inverse = 1 / np.maximum(squares + MIN_NETWORKS * squares.mean() / len(targets), 1e-12)
        mixture = Mixture.fit(held_out, learned, targets, scale, (inverse / inverse.sum()).tolist())
        errors = learned - mixture.shares @ held_out
        square = (errors @ errors + MIN_NETWORKS * EXPECTED**2) / (len(targets) + MIN_NETWORKS)
        mixture = replace(mixture, noise=float(np.sqrt(square)), disagreement=1.0, factor=1.0)
        return cls(Components.fit(inputs, targets), mixture, scale)

    def estimate(self, inputs: Inputs) -> tuple[Array, Array]:
        """Return estimates ``(B,)`` and standard deviations ``(B,)``."""
        return self.mixture.combine(self.scale.transform(self.components.predict(inputs)), self.scale)
