"""What is known of networks before any is trained: learned on public benchmarks, applied to any described graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.predictor.statistics.boosted_trees import BoostedTrees
from nas_core.predictor.statistics.operation_features import FEATURES

__all__ = ["LINEAR", "MONOTONE", "TREES", "Benchmark", "Prior"]

Array = NDArray[np.float64]
LINEAR = {
    "log FLOPs": 3, "log activations": 2, "mean of pooling": -1, "shortest way by convolutions": 1,
    "least receptive field": -1, "ends after spatial": 1,
}  # fmt: skip
"""Weights of standardised features in the linear part: small whole numbers, which a few benchmarks cannot overfit
(Dawes 1979). Chosen, as are :data:`TREES`, on benchmarks left out of those that the scales come from."""
_SIZES = (
    "log FLOPs", "log activations", "mean of pooling", "mean of spatial", "walks' mean of convolutions",
    "shortest way by convolutions", "shortest way by spatial", "shortest way by identity", "ends after spatial",
)  # fmt: skip
TREES = (
    (*_SIZES[:4], "log parameters", "mean of convolutions", "most weights", "least convolutions", "log ways",
     "least pooling", "sum of pooling", *_SIZES[5:]),
    (*_SIZES[:3], "walks' mean of pooling", *_SIZES[4:]),
)  # fmt: skip
"""Features that each of the boosted models reads."""
MONOTONE = {
    **dict.fromkeys(
        ("log FLOPs", "log parameters", "log activations", "mean of convolutions", "mean of spatial", "most weights",
         "shortest way by convolutions", "shortest way by spatial", "shortest way by identity", "ends after spatial"),
        1,
    ),
    **dict.fromkeys(("mean of pooling", "least pooling", "sum of pooling", "walks' mean of pooling"), -1),
}  # fmt: skip
"""Features that may only raise (1) or lower (-1) what the trees predict."""
SETTINGS = {
    "num_leaves": 6, "feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "min_data_in_leaf": 20,
}  # fmt: skip


@dataclass(frozen=True)
class Benchmark:
    """Networks of one space that were trained: what a prior learns from."""

    features: Array
    """``(G, F)`` of :func:`operation_features`"""
    targets: Array
    """``(G,)``; only their order is looked at"""
    weight: float = 1.0
    """How much it counts; tasks of one space share 1"""


@dataclass(frozen=True)
class Prior:
    """A linear part and boosted trees, each scaled so that networks of one space differ by about 1."""

    linear: Array
    """``(F,)``"""
    trees: tuple[BoostedTrees, ...]
    scales: Array
    """``(T + 1,)`` of the linear part and of each of the trees"""

    @classmethod
    def fit(cls, benchmarks: Sequence[Benchmark], seed: int = 0) -> Prior:
        """From several benchmarks. Each one's own scale is removed: targets count by their rank among the networks of
        the same benchmark, and the linear part sees differences within one alone."""
        from scipy.special import ndtri
        from scipy.stats import rankdata

        ranks = [ndtri((rankdata(each.targets) - 0.5) / len(each.targets)) for each in benchmarks]
        columns = [FEATURES.index(name) for name in LINEAR]
        within = np.sqrt(np.mean([each.features[:, columns].var(0) for each in benchmarks], 0)) + 1e-9
        linear = np.zeros(len(FEATURES))
        linear[columns] = np.array(list(LINEAR.values())) / within
        features, wanted = np.concatenate([each.features for each in benchmarks]), np.concatenate(ranks)
        weights = np.concatenate([np.full(len(b.targets), 1000 * b.weight / len(b.targets)) for b in benchmarks])
        trees = tuple(_trees(features, wanted, weights, names, seed + i) for i, names in enumerate(TREES))
        prior = cls(linear, trees, np.ones(len(trees) + 1))
        parts = [prior._parts(each.features).std(1) for each in benchmarks]
        return cls(linear, trees, np.sqrt(np.mean(np.square(parts), 0)) + 1e-9)

    @property
    def width(self) -> int:
        """How many columns it gives."""
        return len(self.trees) + 2

    def columns(self, features: Array) -> Array:
        """``(G, width)`` what it says of networks with these features ``(G, F)``: all parts together, then each."""
        parts = self._parts(features) / self.scales[:, None]
        return np.stack([(parts[0] + parts[1:].mean(0)) / 2, *parts], 1)

    def _parts(self, features: Array) -> Array:
        return np.stack([features @ self.linear, *(tree.predict(features) for tree in self.trees)])

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        named = {"linear": torch.from_numpy(self.linear), "scales": torch.from_numpy(self.scales)}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Prior:
        """The inverse of :meth:`to_tensors`.

        Raises:
            KeyError: a tensor is missing.
            DataError: they do not fit together.
        """
        linear, scales = tensors["linear"], tensors["scales"]
        shapes = {"linear": (linear, (len(FEATURES),)), "scales": (scales, (len(TREES) + 1,))}
        for name, (found, shape) in shapes.items():
            if found.dtype != torch.float64 or tuple(found.shape) != shape or not bool(found.isfinite().all()):
                raise DataError(f"{name} of a prior are {found.dtype} of shape {tuple(found.shape)}; expected {shape}")
        if bool((scales <= 0).any()):
            raise DataError("scales of a prior that are not above 0")
        trees = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"], len(FEATURES)) for i in range(len(TREES)))
        return cls(linear.numpy(), trees, scales.numpy())


def _trees(features: Array, targets: Array, weights: Array, names: Sequence[str], seed: int) -> BoostedTrees:
    """Trees that read these features alone."""
    seen = np.zeros_like(features)
    columns = [FEATURES.index(name) for name in names]
    seen[:, columns] = features[:, columns]
    signs = [MONOTONE.get(name, 0) if name in names else 0 for name in FEATURES]
    return BoostedTrees.fit(seen, targets, seed, weights, monotone_constraints=signs, **SETTINGS)
