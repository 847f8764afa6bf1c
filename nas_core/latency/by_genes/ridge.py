"""The default latency model: ridge regression on totals and their products, robust and relative.

Milliseconds add up over layers, hence a model linear in milliseconds rather than in their logarithm; but what matters
is the error in percent, hence weights 1 / prediction^2. Measurements of a disturbed moment are far too slow, hence
Huber's weights on top. The strength of the ridge is the one with the smallest leave-one-out error, in closed form
(Allen's PRESS) from one singular value decomposition. Fitting takes some ten milliseconds, and on HAT's tables it
beats HAT's MLP.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.features import FeatureMap, RowFeatures, SummaryFeatures
from nas_core.latency.model import Floats
from nas_core.space import SearchSpace

_STRENGTHS = np.logspace(-5, 4, 28)
_ROUNDS = 6
_HUBER = 1.345
"""In standard deviations; 95 % efficient when errors are normal (Huber, 1964)."""
_CHUNK = 8192
"""Rows predicted at a time: what fits a processor's cache."""


class LinearModel(GeneLatencyModel):
    """Ridge regression on totals and their products.

    ``latency_ms = constant + w . features + products of totals``; never below a third of the fastest seen.
    """

    name = "linear"

    def __init__(self, space: SearchSpace, source: str = "rows", config: Any = None) -> None:
        super().__init__(space, source, config)
        self.features: FeatureMap = RowFeatures(space) if source == "rows" else SummaryFeatures(space)
        self._constant = 0.0
        self._strength = 0.0
        self._linear: Floats = np.zeros(len(self.features.names))
        self._paired: Floats = np.zeros(len(self.features.pairs[0]))

    def learn(self, inputs: NDArray[Any], latency_ms: Floats) -> Floats:
        features = self.features(inputs)
        first, second = self.features.pairs
        design = np.concatenate([features, features[:, first] * features[:, second]], axis=1)
        weights = 1 / latency_ms**2
        for _ in range(_ROUNDS):
            constant, slopes, left_out, self._strength = ridge(design, latency_ms, weights)
            predicted = np.maximum(constant + design @ slopes, self.floor_ms)
            weights = _huber(latency_ms / predicted - 1) / predicted**2
        self._constant = constant
        self._linear, self._paired = slopes[: features.shape[1]], slopes[features.shape[1] :]
        return np.asarray(latency_ms / np.maximum(left_out, self.floor_ms))

    def estimate(self, inputs: NDArray[Any]) -> Floats:
        square = np.zeros((self.features.totals, self.features.totals))
        square[self.features.pairs] = self._paired
        out = np.empty(len(inputs))
        for start in range(0, len(inputs), _CHUNK):
            features = self.features(inputs[start : start + _CHUNK]).T
            totals = features[: self.features.totals]
            out[start : start + _CHUNK] = self._linear @ features + ((square.T @ totals) * totals).sum(0)
        return np.maximum(out + self._constant, self.floor_ms)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        settings = {
            "constant_ms": self._constant,
            "ridge_strength": self._strength,
            "features": self.features.names,
        }
        return settings, {"linear": self._linear, "paired": self._paired}

    def restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if settings["features"] != self.features.names:
            raise ValueError("its features are not those of its space in this release")
        linear, paired = arrays["linear"].astype(np.float64), arrays["paired"].astype(np.float64)
        if linear.shape != self._linear.shape or paired.shape != self._paired.shape:
            raise ValueError("wrong number of weights")
        self._linear, self._paired = linear, paired
        self._constant = float(settings["constant_ms"])
        self._strength = float(settings["ridge_strength"])


def ridge(design: Floats, target: Floats, weights: Floats) -> tuple[float, Floats, Floats, float]:
    """Weighted ridge regression with the strength chosen by leave-one-out error.

    Args:
        design: ``(n, P)``; columns are standardised inside, the constant is not penalised.
        target: ``(n,)``. weights: ``(n,)``, of the squared errors.

    Returns:
        constant, slopes ``(P,)``, predictions ``(n,)`` of each row by the fit without that row, and the strength.
    """
    weights = weights / weights.sum()
    middle, centre = weights @ design, float(weights @ target)
    spread = np.sqrt(weights @ (design - middle) ** 2)
    used = spread > 1e-9 * np.maximum(np.abs(middle), 1)
    root = np.sqrt(weights)
    scaled = (design[:, used] - middle[used]) / spread[used] * root[:, None]
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    along = left.T @ ((target - centre) * root)
    best: tuple[float, float, Floats] | None = None
    for strength in _STRENGTHS / len(target):
        shrink = values**2 / (values**2 + strength)
        leverage = np.minimum(left**2 @ shrink + weights, 1 - 1e-9)
        error = ((target - centre) * root - left @ (shrink * along)) / (1 - leverage)
        if best is None or error @ error < best[0]:
            best = float(error @ error), float(strength), error
    assert best is not None
    _, strength, error = best
    slopes = np.zeros(design.shape[1])
    slopes[used] = right.T @ (values / (values**2 + strength) * along) / spread[used]
    return centre - float(middle @ slopes), slopes, target - error / root, strength * len(target)


def _huber(relative: Floats) -> Floats:
    """Weights that make least squares of relative errors behave like absolute ones far out."""
    scale = 1.4826 * np.median(np.abs(relative)) + 1e-12
    return np.asarray(np.minimum(1.0, _HUBER * scale / np.maximum(np.abs(relative), 1e-12)))
