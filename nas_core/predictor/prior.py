"""What is known of networks before any is trained: learned on public benchmarks, applied to any described graph."""

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

from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.statistics.operation_features import FEATURES
from nas_core.predictor.statistics.regressions import BoostedTrees

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
        """Invert :meth:`to_tensors`."""
        trees = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"]) for i in range(len(TREES)))
        return cls(tensors["linear"].numpy(), trees, tensors["scales"].numpy())


def _trees(features: Array, targets: Array, weights: Array, names: Sequence[str], seed: int) -> BoostedTrees:
    """Trees that read these features alone."""
    seen = np.zeros_like(features)
    columns = [FEATURES.index(name) for name in names]
    seen[:, columns] = features[:, columns]
    signs = [MONOTONE.get(name, 0) if name in names else 0 for name in FEATURES]
    return BoostedTrees.fit(seen, targets, seed, weights, monotone_constraints=signs, **SETTINGS)


FILE = Path(__file__).parent / "shipped" / "prior.safetensors"
_KIND = "prior"


@functools.cache
def shipped_prior() -> Prior:
    """What this package knows of networks; the header of :data:`FILE` names the benchmarks and their licences.

    Raises:
        DataError: the file is damaged.
    """
    return read_prior(FILE)[0]


def read_prior(path: str | Path) -> tuple[Prior, dict[str, Any]]:
    """A prior and the header of its file: ``benchmarks`` with ``name``, ``networks``, ``source`` and ``licence``.

    Raises:
        DataError: the file is missing, damaged, or something else.
    """
    header, tensors = read_artifact(path, _KIND)
    return Prior.from_tensors(tensors), header


def write_prior(path: str | Path, prior: Prior, benchmarks: Sequence[Mapping[str, Any]]) -> None:
    """Write a prior and what it learned from.

    Raises:
        ConfigError: the name does not end in .safetensors. NasExtError: it cannot be written.
    """
    write_artifact(path, _KIND, {"benchmarks": [dict(each) for each in benchmarks]}, prior.to_tensors())
