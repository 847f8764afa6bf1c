"""Gaussian processes and boosted trees on graph statistics as a member of a predictor: graphs in, learned units out."""

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
from nas_core.predictor.statistics.boosted_trees import BoostedTrees, Forest
from nas_core.predictor.statistics.description import Description
from nas_core.predictor.statistics.gaussian_process import GaussianProcess, KernelSums
from nas_core.predictor.targets import TargetScale
from nas_core.predictor.training.progress import Progress

Array = NDArray[np.float64]
PENALTIES = np.logspace(-4, 4, 33)
"""In mean squares of the columns, times the number of graphs"""


@dataclass(frozen=True)
class Additive:
    """A weight for each kind of operation at each value of an attribute, learned in the units of the targets: ranks of
    sums are no sums."""

    weights: Tensor
    """``(F,)``"""
    offset: Tensor
    """``()``"""
    points: Tensor
    """``(2, P)`` of the scale between targets and what other parts learn; P is 0 where both are the same"""

    @classmethod
    def fit(cls, counts: Array, learned: Array, scale: TargetScale) -> tuple[Additive, Array]:
        """From counts ``(G, F)`` and what is to be learned ``(G,)``; beside it what it says of each graph when that one
        and all of equal counts are left out, ``(G,)`` in the same units. The penalty is the one with which graphs that
        are left out are predicted best, which has a closed form (Golub, Heath and Wahba 1979)."""
        distinct, of, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        of, roots = of.reshape(-1), np.sqrt(times)
        targets = np.bincount(of, scale.restore(learned)) / times
        mean, middle = times @ distinct / times.sum(), float(times @ targets / times.sum())
        basis, singular, rows = np.linalg.svd((distinct - mean) * roots[:, None], full_matrices=False)
        off = (targets - middle) * roots
        inner = basis.T @ off
        unit = float((singular**2).sum()) / max(counts.shape[1], 1) or 1.0
        best, weights, left_out = np.inf, np.zeros(counts.shape[1]), targets
        for penalty in PENALTIES * unit:
            kept = singular**2 / (singular**2 + penalty)
            reach = (basis**2 @ kept) + times / times.sum()
            missed = (off - basis @ (kept * inner)) / np.maximum(1 - reach, 1e-9)
            if (error := float(np.mean(missed**2))) < best:
                best, weights = error, rows.T @ (singular / (singular**2 + penalty) * inner)
                left_out = targets - missed / roots
        points = torch.tensor([scale.targets, scale.learned], dtype=torch.float64)
        offset = torch.tensor(middle - float(mean @ weights), dtype=torch.float64)
        return cls(torch.from_numpy(weights), offset, points), scale.learn(left_out[of])

    def predict(self, counts: Array) -> Array:
        """``(B,)`` in the units that the other parts learn, from counts ``(B, F)``."""
        targets, learned = (tuple(side) for side in self.points.tolist())
        return TargetScale(targets, learned).learn(counts @ self.weights.numpy() + float(self.offset))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        return {name: getattr(self, name) for name in ("weights", "offset", "points")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Additive:
        """Invert :meth:`to_tensors`."""
        return cls(**tensors)


COLUMNS = 0.5
"""Share of the statistics that each process sees (random subspaces, Ho 1998): with a hundred graphs there are more
statistics than a single one can weigh. Static features are seen by all."""
CHUNK = 50_000
"""Graphs predicted at once."""
UNSCALED = TargetScale((), ())
DOUBT = 3.0
"""Graphs of slope 0 that the slope of a prior is learned with."""
FADES = 100.0
"""Graphs of which a prior counts for half of its slope: what is learned does without it the better the more there are.
"""
FEW = 64
"""Graphs up to which all boosted models are asked at once; for more, the trees of one fit the processor's caches."""
JUDGES = 2
"""Processes and boosted models that judge a fold."""


@dataclass(frozen=True)
class StatisticsModel:
    """What several :class:`GaussianProcess`, each from a random half of the statistics, and several
    :class:`BoostedTrees` learned."""

    processes: tuple[GaussianProcess, ...]
    columns: tuple[Tensor, ...]
    """Statistics that each of the processes sees"""
    trees: tuple[BoostedTrees, ...]
    description: Description
    """Which statistics these are"""
    mean: float
    """Mean of the targets."""
    deviation: float
    """Standard deviation of the targets."""
    slope: float = 0.0
    """By how much a prior's prediction counts, before anything is added to it; in deviations of the targets"""
    additive: Additive | None = None
    """Where attributes of operations are counted value by value, and processes and trees stand together"""

    @classmethod
    def fit(
        cls,
        graphs: Graphs,
        targets: Array,
        processes: int,
        trees: int,
        seed: int,
        prior: Prior | None = None,
        scale: TargetScale = UNSCALED,
    ) -> StatisticsModel:
        """From graphs and targets ``(G,)``.

        Args:
            processes: Gaussian processes; a single one sees all statistics.
            trees: boosted models.
            prior: what is known before; the model then learns what is to be added to it.
            scale: between what a person measured and the targets.

        Raises:
            DataError: all graphs have equal statistics.
            GraphError: nodes do not stand in topological order.
        """
        description = Description.of(graphs, prior)
        statistics = description.describe(graphs)
        model = cls.of_statistics(description, statistics, targets, processes, trees, seed)
        return model._with_sums(statistics, targets, scale)[0]

    @classmethod
    def fit_judged(
        cls,
        graphs: Graphs,
        targets: Array,
        members: tuple[int, int],
        seed: int,
        fold: NDArray[np.int64],
        told: Progress | None = None,
        prior: Prior | None = None,
        scale: TargetScale = UNSCALED,
    ) -> tuple[StatisticsModel, Array]:
        """Do as :meth:`fit` does; beside it give what models like it say of graphs they were not fitted to, ``(K, G)``,
        rows as of :meth:`predict`.

        Args:
            members: how many processes and trees; :data:`JUDGES` judge in their place.
            fold: ``(G,)`` the fold of each graph; who judges it was fitted to the other folds.
            prior: as of :meth:`fit`, as is ``scale``.
            told: called with the step, the number of steps and the mean squared error so far, in variances of the
                targets.
        """
        description, folds = Description.of(graphs, prior), np.unique(fold)
        statistics = description.describe(graphs)
        model = cls.of_statistics(description, statistics, targets, *members, seed)
        found = np.full((len(model.parts), len(targets)), targets.mean())
        for step, each in enumerate(folds):
            rest = fold != each
            few, own = (min(JUDGES, members[0]), min(JUDGES, members[1])), seed + 101 * (int(each) + 1)
            with suppress(DataError):  # the graphs of the other folds are all alike, where there are few
                judge = cls.of_statistics(description, statistics[rest], targets[rest], *few, own)
                found[:, ~rest] = judge.predict_from(statistics[~rest])
            if told is not None:
                told(step + 1, len(folds), _error(found.mean(0), targets))
        whole, left_out = model._with_sums(statistics, targets, scale)
        return whole, np.concatenate([found, left_out])

    @classmethod
    def of_statistics(
        cls,
        description: Description,
        statistics: Array,
        targets: Array,
        processes: int,
        trees: int,
        seed: int,
    ) -> StatisticsModel:
        """Fit processes and trees to the statistics ``(G, F)`` of graphs."""
        mean, deviation = float(targets.mean()), float(targets.std()) or 1.0
        varying = np.flatnonzero(statistics.std(0) > 1e-9)
        if not len(varying):
            raise DataError("all graphs have equal statistics; there is nothing to learn from them")
        wanted, slope = (targets - mean) / deviation, 0.0
        if description.prior is not None:
            said = statistics[:, 0] - statistics[:, 0].mean()
            slope = float(np.clip(said @ wanted / max(said @ said + DOUBT * said.var(), 1e-9), 0, 1e3))
            slope *= FADES / (FADES + len(targets))
            mean -= deviation * slope * float(statistics[:, 0].mean())
            wanted = wanted - slope * said
        stream = np.random.default_rng([seed, 2])
        chosen = [_columns(description, statistics.shape[1], varying, i, processes, stream) for i in range(processes)]
        unit = float(wanted.std()) or 1.0  # what the processes learn varies by 1
        smooth = tuple(GaussianProcess.fit(statistics[:, c], wanted / unit, seed + i) for i, c in enumerate(chosen))
        boosted = tuple(BoostedTrees.fit(statistics, wanted / unit, seed + i) for i in range(trees))
        columns = tuple(torch.from_numpy(c) for c in chosen)
        return cls(smooth, columns, boosted, description, mean, deviation * unit, slope / unit)

    def _with_sums(self, statistics: Array, targets: Array, scale: TargetScale) -> tuple[StatisticsModel, Array]:
        """Add the additive part, where there is one to be had; beside it give what it says of each graph left out,
        ``(1, G)``. That has a closed form; with a fold less graphs than weights it would look far worse than it is."""
        counts = statistics[:, self.description.counted]
        if not (self.processes and self.trees and counts.shape[1]):
            return self, np.zeros((0, len(targets)))
        additive, left_out = Additive.fit(counts, targets, scale)
        return replace(self, additive=additive), left_out[None]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows that :meth:`predict` gives."""
        names = ("described processes", "processes") if len(self.description.groups) > 1 else ("processes",)
        more = {"trees": bool(self.trees), "additive": self.additive is not None}
        return (*(names[group] for group in sorted({*self._groups})), *(name for name, there in more.items() if there))

    @property
    def _groups(self) -> list[int]:
        """The group of columns that each process draws from."""
        return [_group_of(i, len(self.processes), self.description) for i in range(len(self.processes))]

    def predict(self, graphs: Graphs, apart: bool = False) -> Array:
        """``(K, B)`` in the units of the targets it was fitted to: for each group of columns the mean of the processes
        that draw from it, the trees' mean and the additive part, as far as it has them.

        Args:
            apart: give each process and each of the boosted models, ``(processes + trees, B)``, and no more.
        """
        chunks = [graphs[start : start + CHUNK] for start in range(0, len(graphs), CHUNK)]
        return np.concatenate([self.predict_from(self.description.describe(part), apart) for part in chunks], 1)

    def predict_from(self, statistics: Array, apart: bool = False) -> Array:
        """Predict from the statistics ``(B, F)`` of graphs, as :meth:`predict` does from graphs."""
        smooth = [row for sums in self._sums for row in sums(statistics)]
        groups = [[row for row, of in zip(smooth, self._groups, strict=True) if of == group] for group in (0, 1)]
        if len(statistics) <= FEW and self.trees and not apart:
            boosted = [self._forest.predict(statistics)]
        else:
            boosted = [trees.predict(statistics) for trees in self.trees]
        kinds = (*groups, boosted)
        rows = np.stack([row for kind in kinds if kind for row in (kind if apart else [np.mean(kind, 0)])])
        rows = self.mean + self.deviation * (rows + (self.slope * statistics[:, 0] if self.slope else 0.0))
        if self.additive is None or apart:
            return rows
        return np.concatenate([rows, self.additive.predict(statistics[:, self.description.counted])[None]])

    @cached_property
    def _forest(self) -> Forest:
        return Forest.of(self.trees)

    @cached_property
    def _sums(self) -> list[KernelSums]:
        """Give the sums of neighbouring processes of equal shapes together, as those of one group have them."""
        found = []
        pairs = zip(self.processes, self.columns, strict=True)
        for _, some in groupby(pairs, key=lambda pair: pair[0].points.shape):
            processes, columns = zip(*some, strict=True)
            found.append(KernelSums.of([process.to_tensors() for process in processes], columns))
        return found

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        numbers = torch.tensor([self.mean, self.deviation, self.slope], dtype=torch.float64)
        named = {"numbers": numbers, **self.description.to_tensors()}
        if self.additive is not None:
            named |= {f"additive.{name}": tensor for name, tensor in self.additive.to_tensors().items()}
        for i, (process, columns) in enumerate(zip(self.processes, self.columns, strict=True)):
            parts = {"columns": columns, **process.to_tensors()}
            named |= {f"process.{i}.{name}": part for name, part in parts.items()}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], processes: int, trees: int) -> StatisticsModel:
        """Return the model of such tensors, the inverse of :meth:`to_tensors`.

        Raises:
            KeyError: a tensor is missing.
            DataError: trees that cannot be read.
        """
        parts = [below(f"process.{i}.", tensors) for i in range(processes)]
        columns = tuple(part.pop("columns") for part in parts)
        smooth = tuple(map(GaussianProcess.from_tensors, parts))
        boosted = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"]) for i in range(trees))
        sums = below("additive.", tensors)
        additive = Additive.from_tensors(sums) if sums else None
        mean, deviation, slope = tensors["numbers"].tolist()
        description = Description.from_tensors(tensors)
        return cls(smooth, columns, boosted, description, mean, deviation, slope, additive)


def _error(predicted: Array, targets: Array) -> float:
    return float(np.mean((predicted - targets) ** 2) / (targets.var() or 1.0))


def _group_of(process: int, processes: int, description: Description) -> int:
    """The group of columns that a process draws from: the first ones from what operations do, where that is told."""
    return int(len(description.groups) > 1 and process >= processes // 2)


def _columns(
    description: Description,
    columns: int,
    varying: NDArray[np.int64],
    process: int,
    processes: int,
    stream: np.random.Generator,
) -> NDArray[np.int64]:
    """Statistics that a process reads: the prior's and the static features, which are few and somebody chose, and a
    random half of its group; a single one reads all."""
    group = description.groups[_group_of(process, processes, description) if processes > 1 else -1]
    given = (varying < description.told) | (varying >= columns - description.vocabulary.static)
    own = varying[(varying >= group.start) & (varying < group.stop) & ~given]
    size = max(1, round(COLUMNS * len(own))) if processes > 1 else len(own)
    chosen = np.union1d(varying[given], stream.permutation(own)[:size])
    return chosen if len(chosen) else varying
