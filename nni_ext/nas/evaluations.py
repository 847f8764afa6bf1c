"""Evaluated models of a search in a model space of NNI, with replay of earlier results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.errors import ConfigError
from nas_core.search import Constraint, Strategy
from nas_core.search.journal import plain_metrics
from nas_core.space import Architecture
from nni_ext.nas.spaces import FlatSpace
from nni_ext.objectives import NEGATED, with_negatives
from nni_ext.record import Record


@dataclass(frozen=True)
class Evaluated:
    """Evaluated model."""

    sample: Mapping[str, Any]
    """Label -> value, for ``model_space.freeze``"""
    architecture: Architecture
    metric: float | None
    """Metric of the evaluator; None after a failure"""
    costs: Mapping[str, float]
    """Values of limited costs by name, from profilers"""
    others: Mapping[str, float] = field(default_factory=dict)
    """Other metrics of the evaluator by name"""


class Evaluations:
    """Evaluated models in the order of their results.

    Args:
        search: search that minimises its metric.
        costs: constraints that compute :attr:`Evaluated.costs`.
        maximize: larger metrics are better.
    """

    def __init__(self, search: Strategy, flat: FlatSpace, costs: Sequence[Constraint], maximize: bool) -> None:
        self.search, self.flat, self.costs, self.maximize = search, flat, tuple(costs), maximize
        self._evaluated_models: dict[Architecture, Evaluated] = {}
        self._record: Record | None = None

    @property
    def entries(self) -> list[Evaluated]:
        return list(self._evaluated_models.values())

    def best(self) -> Evaluated | None:
        """Return the earliest model with the best metric; None if there is none."""
        models = [model for model in self.entries if model.metric is not None]
        return min(models, key=lambda model: self._score(model.metric) or 0.0, default=None)

    def tell(self, architecture: Architecture, reported: Any) -> None:
        """Add an evaluator's result (None: failed); later results of the same architecture are ignored."""
        if architecture in self._evaluated_models:
            return
        evaluated = self._evaluated(architecture, reported)
        if self._record is not None:
            self._write(self._record, evaluated)
        self._evaluated_models[architecture] = evaluated
        self.search.tell(architecture, self._metrics(evaluated))

    def replay(self, results: Mapping[Architecture, Any]) -> None:
        """Add results of an earlier run in the order in which the search asks for them.

        Architectures without a result are proposed again first.
        """
        missing = {key: reported for key, reported in results.items() if key not in self._evaluated_models}
        while missing and (architectures := self.search.ask(1)):
            if architectures[0] in missing:
                self.tell(architectures[0], missing.pop(architectures[0]))
        for architecture, reported in missing.items():
            self.tell(architecture, reported)
        self.search.requeue()

    def keep_in(self, record: Record) -> None:
        """Replay the results of a record, and write all other and later results to it."""
        recorded = {architecture: self._reported(architecture, metrics) for architecture, metrics in record.results()}
        for model in self.entries:
            if model.architecture not in recorded:
                self._write(record, model)
        self.replay(recorded)
        self._record = record

    def state(self) -> dict[str, Any]:
        """Return the search and its results as plain types."""
        archive = [
            {"genes": model.architecture.to_dict(), "metric": model.metric, "others": dict(model.others)}
            for model in self.entries
        ]
        return {"maximize": self.maximize, "search": self.search.state_dict(), "archive": archive}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`; raise a ConfigError for a state of another search."""
        if state["maximize"] != self.maximize:
            raise ConfigError(f"the state was saved with maximize={state['maximize']}; give that")
        self.search.load_state_dict(state["search"])
        self.search.requeue()
        for entry in state["archive"]:
            architecture = Architecture(entry["genes"])
            reported = {**entry["others"], "default": entry["metric"]}
            self._evaluated_models[architecture] = self._evaluated(architecture, reported)

    def _evaluated(self, architecture: Architecture, reported: Any) -> Evaluated:
        row = self.flat.space.row(architecture)
        costs = {constraint.name: float(constraint.values(row[None])[0]) for constraint in self.costs}
        metrics = plain_metrics(reported) if isinstance(reported, Mapping) else {}
        numbers = {name: value for name, value in metrics.items() if name != "default" and value is not None}
        return Evaluated(self.flat.sample_of_row(row), architecture, reported_number(reported), costs, numbers)

    def _metrics(self, model: Evaluated) -> dict[str, float | None]:
        metrics = {**model.others, self.search.metric: self._score(model.metric)}
        return with_negatives(metrics, self.search.objectives[1:])

    def _reported(self, architecture: Architecture, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return the evaluator's result from a record, without predicted and negated metrics."""
        added = {**self._predicted(architecture), self.search.metric: recorded.get(self.search.metric)}
        metrics = {name: value for name, value in recorded.items() if added.get(name, math.nan) != value}
        plain = {name: value for name, value in metrics.items() if not name.startswith(NEGATED)}
        return {**plain, "default": self._score(recorded.get(self.search.metric))}

    def _predicted(self, architecture: Architecture) -> dict[str, float]:
        row = self.flat.space.rows([architecture])
        return {constraint.name: float(constraint.values(row)[0]) for constraint in self.search.proposals.constraints}

    def _write(self, record: Record, model: Evaluated) -> None:
        record.add(model.architecture, {**self._predicted(model.architecture), **self._metrics(model)})

    def _score(self, metric: float | None) -> float | None:
        return -metric if metric is not None and self.maximize else metric


def reported_number(reported: Any) -> float | None:
    """Return an evaluator's metric (``default`` of several) as a finite number, or None."""
    value = reported.get("default") if isinstance(reported, Mapping) else reported
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
