"""Prior: ranking of networks of any search space without training data, learned from public benchmarks."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.predictor.artifact import read_artifact
from nas_core.predictor.statistics.operation_features import FEATURES
from nas_core.predictor.statistics.regressions import BoostedTrees

Array = NDArray[np.float64]
LINEAR = {
    "log FLOPs": 3, "log activations": 2, "mean of pooling": -1, "shortest way by convolutions": 1,
    "least receptive field": -1, "ends after spatial": 1,
}  # fmt: skip
"""Weights of standardised features in the linear function: small integers, as Dawes (1979) recommends."""
# They and TREES were chosen on held-out benchmarks.
_SIZES = (
    "log FLOPs", "log activations", "mean of pooling", "mean of spatial", "walks' mean of convolutions",
    "shortest way by convolutions", "shortest way by spatial", "shortest way by identity", "ends after spatial",
)  # fmt: skip
TREES = (
    (*_SIZES[:4], "log parameters", "mean of convolutions", "most weights", "least convolutions", "log ways",
     "least pooling", "sum of pooling", *_SIZES[5:]),
    (*_SIZES[:3], "walks' mean of pooling", *_SIZES[4:]),
)  # fmt: skip
MONOTONE = {
    **dict.fromkeys(
        ("log FLOPs", "log parameters", "log activations", "mean of convolutions", "mean of spatial", "most weights",
         "shortest way by convolutions", "shortest way by spatial", "shortest way by identity", "ends after spatial"),
        1,
    ),
    **dict.fromkeys(("mean of pooling", "least pooling", "sum of pooling", "walks' mean of pooling"), -1),
}  # fmt: skip
"""Sign of the monotone dependence of the trees on some features."""
SETTINGS = {
    "num_leaves": 6, "feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "min_data_in_leaf": 20,
}  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    """Results of trained networks of one search space."""

    features: Array
    """``(G, F)`` features of :func:`operation_features`"""
    targets: Array
    """``(G,)``; only their order is used"""
    weight: float = 1.0
    """Weight; the weights of all benchmarks of one search space sum to 1"""


@dataclass(frozen=True)
class Prior:
    """Mean of a linear function and boosted trees on :func:`operation_features`, for any search space."""

    linear: Array
    """``(F,)``"""
    trees: tuple[BoostedTrees, ...]
    scales: Array
    """``(T + 1,)`` standard deviations of the linear function and of each boosted model"""

    @classmethod
    def fit(cls, benchmarks: Sequence[Benchmark], seed: int = 0) -> Prior:
        """Fit the prior to ranks of targets within each benchmark."""
        from scipy.special import ndtri
        from scipy.stats import rankdata

        ranks = [ndtri((rankdata(b.targets) - 0.5) / len(b.targets)) for b in benchmarks]
        columns = [FEATURES.index(name) for name in LINEAR]
        deviations = np.sqrt(np.mean([b.features[:, columns].var(0) for b in benchmarks], 0)) + 1e-9
        linear = np.zeros(len(FEATURES))
        linear[columns] = np.array(list(LINEAR.values())) / deviations
        features, targets = np.concatenate([b.features for b in benchmarks]), np.concatenate(ranks)
        weights = np.concatenate([np.full(len(b.targets), 1000 * b.weight / len(b.targets)) for b in benchmarks])
        trees = tuple(_trees(features, targets, weights, names, seed + i) for i, names in enumerate(TREES))
        prior = cls(linear, trees, np.ones(len(trees) + 1))
        stds = [prior._model_scores(b.features).std(1) for b in benchmarks]
        return cls(linear, trees, np.sqrt(np.mean(np.square(stds), 0)) + 1e-9)

    @property
    def width(self) -> int:
        return len(self.trees) + 2

    def columns(self, features: Array) -> Array:
        """Return scores ``(G, T + 2)`` from features ``(G, F)``: the mean, then those of the T + 1 models."""
        scores = self._model_scores(features) / self.scales[:, None]
        return np.stack([(scores[0] + scores[1:].mean(0)) / 2, *scores], 1)

    def _model_scores(self, features: Array) -> Array:
        return np.stack([features @ self.linear, *(tree.predict(features) for tree in self.trees)])

    def to_tensors(self) -> dict[str, Tensor]:
        named = {"linear": torch.from_numpy(self.linear), "scales": torch.from_numpy(self.scales)}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Prior:
        trees = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"]) for i in range(len(TREES)))
        return cls(tensors["linear"].numpy(), trees, tensors["scales"].numpy())


def _trees(features: Array, targets: Array, weights: Array, names: Sequence[str], seed: int) -> BoostedTrees:
    visible = np.zeros_like(features)
    columns = [FEATURES.index(name) for name in names]
    visible[:, columns] = features[:, columns]
    signs = [MONOTONE.get(name, 0) if name in names else 0 for name in FEATURES]
    return BoostedTrees.fit(visible, targets, seed, weights, monotone_constraints=signs, **SETTINGS)


FILE = Path(__file__).parent / "shipped" / "prior.safetensors"
KIND = "zero-shot ranking"


@functools.cache
def shipped_prior() -> Prior:
    """Return the shipped prior."""
    return read_prior(FILE)[0]


def read_prior(path: str | Path) -> tuple[Prior, dict[str, Any]]:
    """Return a prior and its header, with ``name``, ``networks``, ``source`` and ``licence`` of its ``benchmarks``."""
    header, tensors = read_artifact(path, KIND)
    return Prior.from_tensors(tensors), header
