"""What a search over a model space of NNI was told, and how it is told again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.errors import ConfigError
from nas_core.search import Constraint, Strategy
from nas_core.search.journal import plain_metrics
from nas_core.space import Architecture
from nni_ext.nas.flat import FlatSpace
from nni_ext.objectives import NEGATED, with_negatives
from nni_ext.record import Record

FORMAT, VERSION = "nas-ext/nni-strategy", 1


@dataclass(frozen=True)
class Evaluated:
    """One evaluated model."""

    sample: Mapping[str, Any]
    """Label -> value; ``model_space.freeze`` takes it."""
    architecture: Architecture
    """The same for ``nas_core``."""
    metric: float | None
    """The metric that the evaluator reported; None if it failed."""
    costs: Mapping[str, float]
    """What the profilers of the limits say, by name."""
    others: Mapping[str, float] = field(default_factory=dict)
    """The other metrics that the evaluator reported, by name."""


class Evaluations:
    """Evaluated models in the order of their results, and the search that is told them.

    Args:
        search: minimises the score of its own metric.
        flat: its space, with NNI's values.
        costs: predict what is kept as :attr:`Evaluated.costs`.
        maximize: whether larger metrics are better.
    """

    def __init__(self, search: Strategy, flat: FlatSpace, costs: Sequence[Constraint], maximize: bool) -> None:
        self.search, self.flat, self.costs, self.maximize = search, flat, tuple(costs), maximize
        self._known: dict[Architecture, Evaluated] = {}
        self._record: Record | None = None

    @property
    def entries(self) -> list[Evaluated]:
        return list(self._known.values())

    def best(self) -> Evaluated | None:
        """The earliest of those with the best metric; None while there is none."""
        known = [one for one in self._known.values() if one.metric is not None]
        return min(known, key=lambda one: self._score(one.metric) or 0.0, default=None)

    def tell(self, architecture: Architecture, reported: Any) -> None:
        """What an evaluator reported, or None; of a second result for the same architecture nothing is taken.

        Raises:
            ArchitectureError: it lies outside the space. NasExtError: the record cannot be written.
        """
        if architecture in self._known:
            return
        evaluated = self._evaluated(architecture, reported)
        if self._record is not None:
            self._write(self._record, evaluated)
        self._known[architecture] = evaluated
        self.search.tell(architecture, self._metrics(evaluated))

    def replay(self, results: Mapping[Architecture, Any]) -> None:
        """Results of an earlier run. The search asks as it would have and gets what is known, so that it learns in the
        same order; what was asked for and is not known is asked for first."""
        found = {architecture: metric for architecture, metric in results.items() if architecture not in self._known}
        while found and (asked := self.search.ask(1)):
            if asked[0] in found:
                self.tell(asked[0], found.pop(asked[0]))
        for architecture, metric in found.items():
            self.tell(architecture, metric)
        self.search.requeue()

    def keep_in(self, record: Record) -> None:
        """Replay what the record has, and have it keep all others, from now on as they come.

        Raises:
            NasExtError: it cannot be read or written.
        """
        recorded = {one: self._reported(one, metrics) for one, metrics in record.results()}
        for one in self.entries:
            if one.architecture not in recorded:
                self._write(record, one)
        self.replay(recorded)
        self._record = record

    def state(self) -> dict[str, Any]:
        """The search and its results in plain types."""
        archive = [
            {
                "genes": one.architecture.to_dict(),
                "metric": one.metric,
                **({"others": one.others} if one.others else {}),
            }
            for one in self._known.values()
        ]
        head = {"format": FORMAT, "version": VERSION, "maximize": self.maximize}
        return {**head, "search": self.search.state_dict(), "archive": archive}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue where :meth:`state` was taken.

        Raises:
            ConfigError: the state of another search, or none at all.
        """
        try:
            if (state["format"], state["version"]) != (FORMAT, VERSION):
                raise ConfigError(
                    f"the state is {state['format']!r} {state['version']!r}; expected {FORMAT!r} {VERSION}, as this"
                    " release's strategies save it"
                )
            if state["maximize"] != self.maximize:
                raise ConfigError(f"the state was saved with maximize={state['maximize']}; give the same")
            self.search.load_state_dict(state["search"])
            self.search.requeue()
            for entry in state["archive"]:
                architecture, others = Architecture(entry["genes"]), dict(entry.get("others", {}))
                self._known[architecture] = self._evaluated(architecture, {**others, "default": entry["metric"]})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"not the state of a strategy of nas-ext ({error!r}); start without it") from None

    def _evaluated(self, architecture: Architecture, reported: Any) -> Evaluated:
        row = self.flat.space.row(architecture)
        costs = {constraint.name: float(constraint.values(row[None])[0]) for constraint in self.costs}
        others = plain_metrics(reported) if isinstance(reported, Mapping) else {}
        numbers = {name: value for name, value in others.items() if name != "default" and value is not None}
        return Evaluated(self.flat.sample_of_row(row), architecture, reported_number(reported), costs, numbers)

    def _metrics(self, one: Evaluated) -> dict[str, float | None]:
        """What the search is told."""
        metrics = {**one.others, self.search.metric: self._score(one.metric)}
        return with_negatives(metrics, self.search.objectives[1:])

    def _reported(self, architecture: Architecture, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """What an evaluator had reported, from a record, which also has what was predicted and negatives."""
        added = {**self._predicted(architecture), self.search.metric: recorded.get(self.search.metric)}
        others = {name: value for name, value in recorded.items() if added.get(name, math.nan) != value}
        plain = {name: value for name, value in others.items() if not name.startswith(NEGATED)}
        return {**plain, "default": self._score(recorded.get(self.search.metric))}

    def _predicted(self, architecture: Architecture) -> dict[str, float]:
        """What is limited, by name."""
        row = self.flat.space.rows([architecture])
        return {constraint.name: float(constraint.values(row)[0]) for constraint in self.search.proposals.constraints}

    def _write(self, record: Record, one: Evaluated) -> None:
        record.add(one.architecture, {**self._predicted(one.architecture), **self._metrics(one)})

    def _score(self, metric: float | None) -> float | None:
        """The metric as something to minimise, and back."""
        return -metric if metric is not None and self.maximize else metric


def reported_number(reported: Any) -> float | None:
    """A reported metric as a finite number, None if it is none; of several values that named ``default``."""
    value = reported.get("default") if isinstance(reported, Mapping) else reported
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
