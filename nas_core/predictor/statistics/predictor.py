"""Accuracy models on graph statistics: regressions averaged with learned weights, with or without a prior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph import Graph, Graphs
from nas_core.predictor.base import AccuracyModel, Array
from nas_core.predictor.mixture import Mixture, fold_of
from nas_core.predictor.prior import Prior, shipped_prior
from nas_core.predictor.progress import Progress
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import operation_features
from nas_core.predictor.targets import SCALES, TargetScale


@dataclass(frozen=True, kw_only=True)
class StatisticsConfig:
    """Settings of :class:`StatisticsPredictor`."""

    processes: int = 8
    """Number of Gaussian processes, each on half of the graph statistics; a single one uses all."""
    trees: int = 8
    """Number of boosted tree models on graph statistics."""
    targets: str = field(default="normal", metadata={"choices": SCALES})
    """Scale of targets: none, mean or normal (by rank)."""

    def __post_init__(self) -> None:
        check_fields(self, "a predictor", {"processes": Range(0), "trees": Range(0)})
        if not (self.processes or self.trees):
            raise ConfigError("a predictor has processes 0, trees 0; expected one of them above 0")


class StatisticsPredictor(AccuracyModel):
    """Average of Gaussian processes, boosted trees and an additive model on graph statistics.

    The weights and the standard deviation are fitted to out-of-fold predictions. A fit takes seconds.

    Example:
        >>> predictor = StatisticsPredictor(seed=0).fit(graphs, accuracies)
        >>> predictor.predict_with_std(more_graphs)  # two arrays (B,)

    Args:
        unseen: what to do with operations that no training graph has: ``error``, ``warn`` or ``ignore``.
        settings: fields of :class:`StatisticsConfig`, such as ``trees=4``.

    Raises:
        ConfigError, UnknownChoiceError: a setting is unknown or invalid.
    """

    name = "statistics"
    config_class = StatisticsConfig
    statistics: StatisticsModel
    """Fitted regressions."""
    _mixture: Mixture
    _scale: TargetScale

    @property
    def prior(self) -> Prior | None:
        return None

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        scale = TargetScale.fit(self.config.targets, targets)
        learned = scale.transform(targets)
        statistics, held_out = StatisticsModel.fit(
            graphs, learned, self.config.processes, self.config.trees, self.seed, fold_of(graphs, self.seed), progress,
            self.prior, scale,
        )  # fmt: skip
        weights = [1 / len(held_out)] * len(held_out)
        self._mixture = Mixture.fit(held_out, learned, targets, scale, weights)
        self.statistics, self._scale = statistics, scale

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        return self._mixture.combine(self.statistics.predict(graphs), self._scale)

    def predict_components(self, graphs: Iterable[Graph] | Graphs) -> dict[str, Array]:
        """Return the predictions ``(B,)`` of each averaged model, in the units of the targets.

        Models are ``processes`` (Gaussian processes on graph statistics), ``described processes`` (Gaussian processes
        on features with one meaning in all search spaces), ``trees`` (boosted trees) and ``additive`` (ridge regression
        on operation counts).
        """
        self.require_fitted()
        data = self._read(graphs)
        if data is None:
            return {}
        rows = self.statistics.predict(self._with_ends(data))
        return dict(zip(self.statistics.components, map(self._scale.inverse_transform, rows), strict=True))

    def header(self) -> dict[str, Any]:
        return {"mixture": self._mixture.to_json(), "scale": self._scale.to_json()}

    def tensors(self) -> dict[str, Tensor]:
        return self.statistics.to_tensors()

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.statistics = StatisticsModel.from_tensors(tensors, self.config.processes, self.config.trees)
        self._mixture = Mixture.from_json(header["mixture"], len(self.statistics.components))
        self._scale = TargetScale.from_json(header["scale"])


class PriorPredictor(StatisticsPredictor):
    """Prior that ranks graphs before a fit; after it, :class:`StatisticsPredictor` with the prior as a feature.

    Graphs must have descriptions of their operations.

    Args:
        prior: prior; None: the shipped one, fitted to public benchmarks.
        settings: see :class:`StatisticsPredictor`.
    """

    name = "prior"

    def __init__(self, *, prior: Prior | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._prior = prior

    @property
    def prior(self) -> Prior:
        return self._prior or shipped_prior()

    @property
    def ready(self) -> bool:
        return True

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        if self.fitted:
            return super().estimate(graphs)
        return self.prior.columns(operation_features(graphs))[:, 0], None
