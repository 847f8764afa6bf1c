"""Evaluated models of a search in an NNI model space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.differences import check_same_settings
from nas_core.search import Constraint, Strategy
from nas_core.search.journal import plain_metrics
from nas_core.space import Architecture
from nas_core.space.files import space_to_dict
from nni_ext.nas.spaces import FlatSpace
from nni_ext.objectives import NEGATED, with_negatives
from nni_ext.record import Record


@dataclass(frozen=True)
class EvaluatedModel:
    """Evaluated model of an NNI model space."""

    sample: Mapping[str, Any]
    """Label -> value, for ``model_space.freeze``."""
    architecture: Architecture
    metric: float | None
    """Metric reported by the evaluator; None if the evaluation failed."""
    costs: Mapping[str, float]
    """Profiled values of the constrained costs, by name."""
    others: Mapping[str, float] = field(default_factory=dict)
    """Further metrics reported by the evaluator, by name."""


class Evaluations:
    """Evaluated models of a search, in the order of their results.

    Args:
        costs: constraints whose values are :attr:`EvaluatedModel.costs`.
        maximize: larger metrics are better; ``search`` then minimises the negative metric.
    """

    def __init__(self, search: Strategy, flat: FlatSpace, costs: Sequence[Constraint], maximize: bool) -> None:
        self.search, self.flat, self.costs, self.maximize = search, flat, tuple(costs), maximize
        self._evaluated_models: dict[Architecture, EvaluatedModel] = {}
        self._record: Record | None = None

    @property
    def entries(self) -> list[EvaluatedModel]:
        return list(self._evaluated_models.values())

    def best(self) -> EvaluatedModel | None:
        models = [model for model in self.entries if model.metric is not None]
        return min(models, key=lambda model: self._score(model.metric) or 0.0, default=None)

    def tell(self, architecture: Architecture, reported: Any) -> None:
        """Add the evaluator's result, None for a failure; a second result of an architecture is ignored."""
        if architecture in self._evaluated_models:
            return
        evaluated = self._evaluated(architecture, reported)
        if self._record is not None:
            self._write(self._record, evaluated)
        self._evaluated_models[architecture] = evaluated
        self.search.tell(architecture, self._metrics(evaluated))

    def replay(self, results: Mapping[Architecture, Any]) -> None:
        """Add results of an earlier run, so that the search continues from them."""
        fresh = {key: reported for key, reported in results.items() if key not in self._evaluated_models}
        evaluated = {architecture: self._evaluated(architecture, reported) for architecture, reported in fresh.items()}
        self._evaluated_models |= evaluated
        self.search.replay({architecture: self._metrics(model) for architecture, model in evaluated.items()})

    def record_in(self, record: Record) -> None:
        """Add the results of a run folder to the search, and write further results to the folder."""
        recorded = {architecture: self._reported(architecture, metrics) for architecture, metrics in record.results()}
        for model in self.entries:
            if model.architecture not in recorded:
                self._write(record, model)
        self.replay(recorded)
        self._record = record

    def state(self) -> dict[str, Any]:
        """Return the settings of the search and its results as plain data."""
        archive = [
            {"genes": model.architecture.to_dict(), "metric": model.metric, "others": dict(model.others)}
            for model in self.entries
        ]
        return {"settings": self._settings(), "archive": archive}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from the return value of :meth:`state`; raise a ConfigError if it belongs to another search."""
        advice = "create the strategy with the same settings, for the same model space"
        check_same_settings("the saved state is of a search with", state["settings"], self._settings(), advice)
        self.replay({Architecture(e["genes"]): {**e["others"], "default": e["metric"]} for e in state["archive"]})

    def _settings(self) -> dict[str, Any]:
        return {"maximize": self.maximize, **self.search.describe(), "space": space_to_dict(self.search.space)}

    def _evaluated(self, architecture: Architecture, reported: Any) -> EvaluatedModel:
        row = self.flat.space.row(architecture)
        costs = {constraint.name: float(constraint.values(row[None])[0]) for constraint in self.costs}
        metrics = plain_metrics(reported) if isinstance(reported, Mapping) else {}
        numbers = {name: value for name, value in metrics.items() if name != "default" and value is not None}
        return EvaluatedModel(self.flat.sample_of_row(row), architecture, reported_number(reported), costs, numbers)

    def _metrics(self, model: EvaluatedModel) -> dict[str, float | None]:
        metrics = {**model.others, self.search.metric: self._score(model.metric)}
        return with_negatives(metrics, self.search.objectives[1:])

    def _reported(self, architecture: Architecture, recorded: Mapping[str, Any]) -> dict[str, Any]:
        # A run folder also has predicted and negated metrics.
        added = {**self._predicted(architecture), self.search.metric: recorded.get(self.search.metric)}
        metrics = {name: value for name, value in recorded.items() if added.get(name, math.nan) != value}
        plain = {name: value for name, value in metrics.items() if not name.startswith(NEGATED)}
        return {**plain, "default": self._score(recorded.get(self.search.metric))}

    def _predicted(self, architecture: Architecture) -> dict[str, float]:
        row = self.flat.space.rows([architecture])
        return {constraint.name: float(constraint.values(row)[0]) for constraint in self.search.proposals.constraints}

    def _write(self, record: Record, model: EvaluatedModel) -> None:
        record.add(model.architecture, {**self._predicted(model.architecture), **self._metrics(model)})

    def _score(self, metric: float | None) -> float | None:
        return -metric if metric is not None and self.maximize else metric


def reported_number(reported: Any) -> float | None:
    """Return the metric that an evaluator reported, a number or the entry ``default``; None if it is not finite."""
    value = reported.get("default") if isinstance(reported, Mapping) else reported
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
