"""Gaussian processes and boosted trees on graph statistics."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.artifact import below
from nas_core.predictor.prior import Prior
from nas_core.predictor.progress import Progress
from nas_core.predictor.statistics.features import Description
from nas_core.predictor.statistics.regressions import (
    Additive,
    BoostedTrees,
    Forest,
    GaussianProcess,
    KernelSums,
    tensors_of,
)
from nas_core.predictor.targets import IDENTITY, TargetScale

Array = NDArray[np.float64]
COLUMNS = 0.5  # fraction of the statistics in each Gaussian process (random subspaces, Ho 1998)
CHUNK = 50_000
PRIOR_WEIGHT = 3.0  # number of pseudo-graphs with slope 0 that regularise the weight of a prior
FADES = 100.0  # number of training graphs that halves the weight of a prior
FEW = 64  # maximum number of graphs for which the boosted models are joined into one, to save calls
FOLD_MEMBERS = 2  # maximum number of Gaussian processes, and of boosted models, in the fit for a held-out fold


@dataclass(frozen=True)
class StatisticsModel:
    """Gaussian processes, each on a random half of the graph statistics, and boosted trees."""

    processes: tuple[GaussianProcess, ...]
    columns: tuple[Tensor, ...]
    trees: tuple[BoostedTrees, ...]
    description: Description
    mean: float
    deviation: float
    slope: float = 0.0
    """Weight of the prior, in standard deviations of the targets"""
    additive: Additive | None = None
    """Additive model, if attribute values are counted and there are both Gaussian processes and trees"""

    @classmethod
    def fit(
        cls,
        graphs: Graphs,
        targets: Array,
        processes: int,
        trees: int,
        seed: int,
        fold: NDArray[np.int64],
        progress: Progress | None = None,
        prior: Prior | None = None,
        scale: TargetScale = IDENTITY,
    ) -> tuple[StatisticsModel, Array]:
        """Fit graphs to scaled targets ``(G,)``; return the model and out-of-fold predictions ``(K, G)``.

        The K rows are those of :attr:`components`, such as ``trees``.

        Args:
            processes: number of Gaussian processes.
            trees: number of boosted tree models.
            fold: ``(G,)`` fold of each graph.
            progress: callback; its loss is the mean squared error relative to the variance of the targets.
            scale: map between targets and scaled targets.
        """
        description = Description.of(graphs, prior)
        statistics = description.describe(graphs)
        model = cls.fit_statistics(description, statistics, targets, processes, trees, seed)
        unseen = np.full((len(model.components), len(targets)), targets.mean())
        folds = np.unique(fold)
        for step, held_out in enumerate(folds.tolist(), 1):
            in_fold, fold_members = fold != held_out, (min(FOLD_MEMBERS, processes), min(FOLD_MEMBERS, trees))
            with suppress(DataError):  # few graphs: those of the other folds may be equal
                fold_model = cls.fit_statistics(
                    description, statistics[in_fold], targets[in_fold], *fold_members, seed + 101 * (held_out + 1)
                )
                unseen[:, ~in_fold] = fold_model.predict_statistics(statistics[~in_fold])
            if progress is not None:
                error = np.mean((unseen.mean(0) - targets) ** 2) / (targets.var() or 1.0)
                progress(step, len(folds), float(error))
        counts = statistics[:, description.count_columns]
        if not (processes and trees and counts.shape[1]):
            return model, unseen
        additive, leave_one_out = Additive.fit(counts, targets, scale)
        return replace(model, additive=additive), np.concatenate([unseen, leave_one_out[None]])

    @classmethod
    def fit_statistics(
        cls, description: Description, statistics: Array, targets: Array, processes: int, trees: int, seed: int
    ) -> StatisticsModel:
        """Fit Gaussian processes and trees to statistics ``(G, F)``."""
        mean, deviation = float(targets.mean()), float(targets.std()) or 1.0
        varying = np.flatnonzero(statistics.std(0) > 1e-9)
        if not len(varying):
            raise DataError("all graphs have equal statistics; give graphs that differ")
        standard_targets, slope = (targets - mean) / deviation, 0.0
        if description.prior is not None:
            expected = statistics[:, 0] - statistics[:, 0].mean()
            norm = max(expected @ expected + PRIOR_WEIGHT * expected.var(), 1e-9)
            slope = float(np.clip(expected @ standard_targets / norm, 0, 1e3)) * (FADES / (FADES + len(targets)))
            mean -= deviation * slope * float(statistics[:, 0].mean())
            standard_targets = standard_targets - slope * expected
        stream = np.random.default_rng([seed, 2])
        subsets = [_columns(description, statistics.shape[1], varying, i, processes, stream) for i in range(processes)]
        unit = float(standard_targets.std()) or 1.0
        fitted = tuple(
            GaussianProcess.fit(statistics[:, c], standard_targets / unit, seed + i) for i, c in enumerate(subsets)
        )
        boosted = tuple(BoostedTrees.fit(statistics, standard_targets / unit, seed + i) for i in range(trees))
        columns = tuple(torch.from_numpy(c) for c in subsets)
        return cls(fitted, columns, boosted, description, mean, deviation * unit, slope / unit)

    @property
    def components(self) -> tuple[str, ...]:
        names = ("described processes", "processes") if len(self.description.groups) > 1 else ("processes",)
        fitted = {"trees": bool(self.trees), "additive": self.additive is not None}
        groups = (names[group] for group in sorted({*self._groups}))
        return (*groups, *(name for name, included in fitted.items() if included))

    @property
    def _groups(self) -> list[int]:
        return [_group_of(i, len(self.processes), self.description) for i in range(len(self.processes))]

    def predict(self, graphs: Graphs) -> Array:
        """Return predicted scaled targets ``(K, B)``, one row for each of :attr:`components`."""
        chunks = [graphs[start : start + CHUNK] for start in range(0, len(graphs), CHUNK)]
        return np.concatenate([self.predict_statistics(self.description.describe(chunk)) for chunk in chunks], 1)

    def predict_statistics(self, statistics: Array) -> Array:
        smooth = [row for sums in self._kernel_sums for row in sums(statistics)]
        groups = [[row for row, of in zip(smooth, self._groups, strict=True) if of == group] for group in (0, 1)]
        if len(statistics) <= FEW and self.trees:
            boosted = [self._forest.predict(statistics)]
        else:
            boosted = [trees.predict(statistics) for trees in self.trees]
        rows = np.stack([np.mean(kind, 0) for kind in (*groups, boosted) if kind])
        rows = self.mean + self.deviation * (rows + (self.slope * statistics[:, 0] if self.slope else 0.0))
        if self.additive is None:
            return rows
        return np.concatenate([rows, self.additive.predict(statistics[:, self.description.count_columns])[None]])

    @cached_property
    def _forest(self) -> Forest:
        return Forest(self.trees)

    @cached_property
    def _kernel_sums(self) -> list[KernelSums]:
        pairs = zip(self.processes, self.columns, strict=True)
        groups = (zip(*group, strict=True) for _, group in groupby(pairs, key=lambda pair: pair[0].points.shape))
        return [KernelSums.of(processes, columns) for processes, columns in groups]

    def to_tensors(self) -> dict[str, Tensor]:
        numbers = torch.tensor([self.mean, self.deviation, self.slope], dtype=torch.float64)
        named = {"numbers": numbers, **self.description.to_tensors()}
        if self.additive is not None:
            named |= {f"additive.{name}": tensor for name, tensor in tensors_of(self.additive).items()}
        for i, (process, columns) in enumerate(zip(self.processes, self.columns, strict=True)):
            state = {"columns": columns, **tensors_of(process)}
            named |= {f"process.{i}.{name}": tensor for name, tensor in state.items()}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], processes: int, trees: int) -> StatisticsModel:
        states = [below(f"process.{i}.", tensors) for i in range(processes)]
        columns = tuple(state.pop("columns") for state in states)
        fitted = tuple(GaussianProcess(**state) for state in states)
        boosted = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"]) for i in range(trees))
        sums = below("additive.", tensors)
        mean, deviation, slope = tensors["numbers"].tolist()
        description = Description.from_tensors(tensors)
        return cls(fitted, columns, boosted, description, mean, deviation, slope, Additive(**sums) if sums else None)


def _group_of(process: int, processes: int, description: Description) -> int:
    return int(len(description.groups) > 1 and process >= processes // 2)


def _columns(
    description: Description,
    columns: int,
    varying: NDArray[np.int64],
    process: int,
    processes: int,
    stream: np.random.Generator,
) -> NDArray[np.int64]:
    group = description.groups[_group_of(process, processes, description) if processes > 1 else -1]
    always = (varying < description.prior_width) | (varying >= columns - description.vocabulary.static)
    candidates = varying[(varying >= group.start) & (varying < group.stop) & ~always]
    size = max(1, round(COLUMNS * len(candidates))) if processes > 1 else len(candidates)
    selected = np.union1d(varying[always], stream.permutation(candidates)[:size])
    return selected if len(selected) else varying
