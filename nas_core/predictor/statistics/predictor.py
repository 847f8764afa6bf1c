"""Graph statistics alone as accuracy models: Gaussian processes, boosted trees, and the mean of both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.predictor.base import AccuracyModel, Array
from nas_core.predictor.mixture import Mixture, fold_of
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.targets import TargetScale, check_scale
from nas_core.predictor.training.progress import Progress


@dataclass(frozen=True)
class GaussianProcessConfig:
    """Settings of Gaussian processes."""

    processes: int = 8
    """Each on half of the statistics; one alone sees all."""
    targets: str = "normal"
    """Scale in which targets are learned: none, mean or normal (by rank)."""

    def __post_init__(self) -> None:
        check_fields(self, "Gaussian processes", {"processes": Range(1)})
        check_scale(self.targets)


@dataclass(frozen=True)
class BoostedTreesConfig:
    """Settings of boosted trees."""

    trees: int = 8
    """Boosted models, each from a seed of its own."""
    targets: str = "normal"
    """Scale in which targets are learned: none, mean or normal (by rank)."""

    def __post_init__(self) -> None:
        check_fields(self, "boosted trees", {"trees": Range(1)})
        check_scale(self.targets)


@dataclass(frozen=True)
class StatisticsConfig:
    """Settings of both together."""

    processes: int = 8
    """Gaussian processes, each on half of the statistics; one alone sees all."""
    trees: int = 8
    """Boosted models."""
    targets: str = "normal"
    """Scale in which targets are learned: none, mean or normal (by rank)."""

    def __post_init__(self) -> None:
        check_fields(self, "graph statistics", {"processes": Range(0), "trees": Range(0)})
        check_scale(self.targets)
        if not (self.processes or self.trees):
            raise ConfigError("processes 0 and trees 0 of graph statistics; expected at least one of either")


class _FromStatistics(AccuracyModel):
    """What the three have in common."""

    _model: StatisticsModel
    _scale: TargetScale
    _mixture: Mixture

    @property
    @abstractmethod
    def _numbers(self) -> tuple[int, int]:
        """How many processes and how many boosted models."""

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        scale = TargetScale.fitted(self.config.targets, targets)
        learned, fold = scale.learn(targets), fold_of(graphs, self.seed)
        model, held_out = StatisticsModel.fit_judged(
            graphs, learned, self._numbers, self.seed, fold, progress, None, scale
        )
        mixture = Mixture.fit(held_out, learned, targets, scale, [1 / len(held_out)] * len(held_out))
        self._model, self._scale, self._mixture = model, scale, mixture

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        return self._mixture.combine(self._model.predict(graphs), self._scale)

    def estimate_quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        return self._mixture.quantiles(self._model.predict(graphs), self._scale, levels.tolist())

    def header(self) -> dict[str, Any]:
        return {"scale": self._scale.to_json(), "mixture": self._mixture.to_json()}

    def tensors(self) -> dict[str, Tensor]:
        return self._model.to_tensors()

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._scale = TargetScale.from_json(header["scale"])
        self._model = StatisticsModel.from_tensors(tensors, *self._numbers)
        self._mixture = Mixture.from_json(header["mixture"], len(self._model.parts))


class GaussianProcessPredictor(_FromStatistics):
    """Gaussian processes on graph statistics: smooth, and good with a hundred graphs."""

    name = "gaussian-process"
    config_class = GaussianProcessConfig
    config: GaussianProcessConfig

    @property
    def _numbers(self) -> tuple[int, int]:
        return self.config.processes, 0


class BoostedTreesPredictor(_FromStatistics):
    """Gradient-boosted trees (LightGBM) on graph statistics: rules with thresholds."""

    name = "boosted-trees"
    config_class = BoostedTreesConfig
    config: BoostedTreesConfig

    @property
    def _numbers(self) -> tuple[int, int]:
        return 0, self.config.trees


class StatisticsPredictor(_FromStatistics):
    """Processes and trees together, the part of NN-Former's mixture that is no network."""

    name = "statistics"
    config_class = StatisticsConfig
    config: StatisticsConfig

    @property
    def _numbers(self) -> tuple[int, int]:
        return self.config.processes, self.config.trees
