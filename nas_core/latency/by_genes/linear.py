"""Robust ridge regression, the default latency model of one search space.

The latency of a network is a sum over its layers of products of sizes. So the features are the total of each gene over
the layers, products of pairs of totals, and sums over the layers of products of two genes. Each option between the
smallest and the largest has an indicator.

Squared errors are relative to the prediction and have Huber's weights. The ridge strength minimises the leave-one-out
error in closed form (Allen's PRESS).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.model import Floats
from nas_core.space import Choice, SearchSpace
from nas_core.space.architecture import Option
from nas_core.space.slots import Rows

_STRENGTHS = np.logspace(-5, 4, 28)
_ROUNDS = 6
_HUBER = 1.345  # Huber's threshold in standard deviations; 95 % efficient for normal errors (Huber, 1964)
_CHUNK = 8192  # rows predicted at a time, so that the features fit into the processor's cache
_MAX_INDICATED = 8  # maximum number of options of a numeric gene with indicators
_MAX_PAIRED = 24  # maximum number of totals with all pairwise products; above, only products with a depth gene


class LinearModel(GeneLatencyModel):
    """Ridge regression on totals of genes over layers, and on products of two totals.

    A prediction is at least a third of the fastest measurement.
    """

    name = "linear"

    def __init__(self, space: SearchSpace, source: str = "rows", config: Any = None) -> None:
        super().__init__(space, source, config)
        self.features = RowFeatures(space) if source == "rows" else SummaryFeatures(space)
        self._constant = 0.0
        self._linear: Floats = np.zeros(len(self.features.names))
        self._paired: Floats = np.zeros(len(self.features.pairs[0]))

    def learn(self, inputs: NDArray[Any], latency_ms: Floats) -> Floats:
        features = self.features(inputs)
        first, second = self.features.pairs
        design = np.concatenate([features, features[:, first] * features[:, second]], axis=1)
        weights = 1 / latency_ms**2
        for _ in range(_ROUNDS):
            constant, slopes, held_out = ridge(design, latency_ms, weights)
            predicted = np.maximum(constant + design @ slopes, self.floor_ms)
            weights = _huber(latency_ms / predicted - 1) / predicted**2
        self._constant = constant
        self._linear, self._paired = slopes[: features.shape[1]], slopes[features.shape[1] :]
        return np.asarray(latency_ms / np.maximum(held_out, self.floor_ms))

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
        settings = {"constant_ms": self._constant, "features": self.features.names}
        return settings, {"linear": self._linear, "paired": self._paired}

    def restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._linear, self._paired = arrays["linear"].astype(np.float64), arrays["paired"].astype(np.float64)
        self._constant = float(settings["constant_ms"])


class RowFeatures:
    """Function from option indices ``(n, slots)`` to F features ``(n, F)``.

    The first ``totals`` features are totals of genes over layers. The model also multiplies the pairs of them in
    ``pairs``.
    """

    def __init__(self, space: SearchSpace) -> None:
        names = [choice.name for choice in space.choices]
        self._columns = [range(columns.start, columns.stop) for columns in space.slots.columns]
        self._tables = [_code_tables(choice) for choice in space.choices]
        self._indicators = [
            (index, [row.index(option) if option in row else None for row in choice.options])
            for index, choice in enumerate(space.choices)
            for option in _middle_options(choice)
        ]
        self._products = [
            (first, second)
            for first, choice in enumerate(space.choices)
            for second in range(first + 1, len(names))
            if choice.per is not None and choice.per == space.choices[second].per
        ]
        self.totals = len(names)
        self.pairs = _pairs(space)
        self.names = [
            *names,
            *(f"{c.name}={option}" for c in space.choices for option in _middle_options(c)),
            *(f"{names[first]}*{names[second]}" for first, second in self._products),
        ]

    def __call__(self, inputs: Rows | Floats) -> Floats:
        columns = np.ascontiguousarray(inputs.T)  # one slot after the other: each feature is a few passes over vectors
        shifted = columns.astype(np.intp) + 1  # 0 is a layer that does not exist
        codes = [
            [np.take(table, shifted[slot], mode="clip") for slot, table in zip(gene_slots, tables, strict=True)]
            for gene_slots, tables in zip(self._columns, self._tables, strict=True)
        ]
        sums = [(layers, len(layers)) for layers in codes]
        for index, options in self._indicators:
            slots = zip(self._columns[index], options, strict=True)
            sums.append(([columns[slot] == option for slot, option in slots if option is not None], len(options)))
        for first, second in self._products:
            sums.append(([a * b for a, b in zip(codes[first], codes[second], strict=True)], len(codes[first])))
        out = np.zeros((len(self.names), columns.shape[1]))
        for index, (layers, count) in enumerate(sums):
            for values in layers:
                out[index] += values
            out[index] /= count
        return out.T


class SummaryFeatures:
    """Function from averages over layers ``(n, choices)`` to F features ``(n, F)``; a total is average times depth."""

    def __init__(self, space: SearchSpace) -> None:
        names = [choice.name for choice in space.choices]
        self._depth_of = [None if choice.per is None else names.index(choice.per) for choice in space.choices]
        self._deepest = {
            names.index(gene): max(1, *(int(d) for d in space.choice(gene).options[0]))
            for gene in sorted(space.slots.depth_genes)
        }
        self._unit = {index: space.choices[index].unit for index in self._deepest}
        self.totals = len(names)
        self.pairs = _pairs(space)
        self.names = names + [f"{names[i]}={d}" for i, deepest in self._deepest.items() for d in range(2, deepest)]

    def __call__(self, inputs: Rows | Floats) -> Floats:
        averages = np.asarray(inputs, np.float64).T
        out = np.zeros((len(self.names), averages.shape[1]))
        for row, depth in enumerate(self._depth_of):
            out[row] = averages[row]
            if depth is not None:
                out[row] *= averages[depth] * self._unit[depth] / self._deepest[depth]
        row = self.totals
        for index, deepest in self._deepest.items():
            layers = np.rint(averages[index] * self._unit[index])
            for depth in range(2, deepest):
                out[row] = layers == depth
                row += 1
        return out.T


def ridge(design: Floats, target: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
    """Fit a weighted ridge regression whose strength minimises the leave-one-out error.

    Args:
        design: ``(n, P)`` features, standardised by this function.
        weights: ``(n,)`` weights of the squared errors.

    Returns:
        Constant, slopes ``(P,)``, and leave-one-out predictions ``(n,)``.
    """
    weights = weights / weights.sum()
    center, target_mean = weights @ design, float(weights @ target)
    deviation = np.sqrt(weights @ (design - center) ** 2)
    varying = deviation > 1e-9 * np.maximum(np.abs(center), 1)
    root = np.sqrt(weights)
    scaled = (design[:, varying] - center[varying]) / deviation[varying] * root[:, None]
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    projected = left.T @ ((target - target_mean) * root)
    best: tuple[float, float, Floats] | None = None
    for strength in _STRENGTHS / len(target):
        shrink = values**2 / (values**2 + strength)
        leverage = np.minimum(left**2 @ shrink + weights, 1 - 1e-9)
        error = ((target - target_mean) * root - left @ (shrink * projected)) / (1 - leverage)
        if best is None or error @ error < best[0]:
            best = float(error @ error), float(strength), error
    assert best is not None
    _, strength, error = best
    slopes = np.zeros(design.shape[1])
    slopes[varying] = right.T @ (values / (values**2 + strength) * projected) / deviation[varying]
    return target_mean - float(center @ slopes), slopes, target - error / root


def _huber(relative: Floats) -> Floats:
    scale = 1.4826 * np.median(np.abs(relative)) + 1e-12
    return np.asarray(np.minimum(1.0, _HUBER * scale / np.maximum(np.abs(relative), 1e-12)))


def _code_tables(choice: Choice) -> list[Floats]:
    return [np.array([0.0, *(choice.code(option) / choice.unit for option in row)]) for row in choice.options]


def _middle_options(choice: Choice) -> list[Option]:
    options = sorted({option for row in choice.options for option in row}, key=choice.code)
    names = any(isinstance(option, str) for option in options)
    return options[1:-1] if names or len(options) <= _MAX_INDICATED else []


def _pairs(space: SearchSpace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = np.triu_indices(len(space.choices))
    if len(space.choices) > _MAX_PAIRED:
        is_depth = np.array([choice.name in space.slots.depth_genes for choice in space.choices])
        keep = is_depth[first] | is_depth[second]
        first, second = first[keep], second[keep]
    return first.astype(np.int64), second.astype(np.int64)
