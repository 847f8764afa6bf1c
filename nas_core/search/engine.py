"""What drives the strategies of a search: results replayed or evaluated, handed back, and kept on disk."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.files import write_json
from nas_core.jobs import Failure
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.search.constraints import Constraint
from nas_core.search.finalists import Finalist, choose_finalists, save_finalists, with_measured_before
from nas_core.search.journal import Journal, plain_metrics
from nas_core.search.progress import Progress
from nas_core.search.sessions import Session
from nas_core.search.strategies.base import Strategy
from nas_core.search.within import goals, judged
from nas_core.space import Architecture

GIVEN = "given"
"""Under which the journal has architectures that no search proposed."""

MAX_FAILURES = 10
"""A search stops when this many evaluations in a row have failed: then it is not the architectures' fault."""

Metrics = dict[str, float | None]
EvaluateMany = Callable[[Sequence[Architecture]], Iterable[Mapping[str, Any] | Failure]]


@dataclass(frozen=True)
class SearchResult:
    """What a finished search found."""

    archive: ParetoArchive
    """All evaluated architectures that no other beats."""
    best: dict[str, Entry]
    """Search -> the best architecture within its limits, whichever search evaluated it; missing if all failed."""
    finalists: list[Finalist]
    """The best of each search first, then a spread over the Pareto front."""
    evaluations: int
    """Architectures evaluated, those of earlier, interrupted runs included."""
    saved: int
    """Evaluations that the cache made unnecessary, within a search and between searches."""
    replayed: int
    """Evaluations read from the journal of an interrupted run."""
    evaluated: Mapping[Architecture, Mapping[str, float]]
    """Every architecture with its metrics; those that failed lack some."""
    to_train: Sequence[Mapping[str, Any]] = ()
    """Networks to train next, of a search by a calibration: ``key``, the estimate and the cost that is weighed."""

    @property
    def winner(self) -> Entry:
        """The best architecture of a run with one search.

        Raises:
            ConfigError: there were several searches, each of which has its own in :attr:`best`.
        """
        if len(self.best) != 1:
            raise ConfigError(
                f"the run has several searches; take the best of one: best[{'] or best['.join(map(repr, self.best))}]"
            )
        return next(iter(self.best.values()))


class SearchEngine:
    """The state of one call of :func:`nas_core.search.search`."""

    journal: Journal
    progress: Progress
    kept = True
    """Whether the folder stays when the search has ended."""

    def __init__(
        self,
        strategies: Mapping[str, Strategy],
        evaluate_many: EvaluateMany,
        folder: Path,
        objectives: Sequence[str] | None,
    ) -> None:
        self.strategies = strategies
        self.evaluate_many = evaluate_many
        self.folder = folder
        self.space = next(iter(strategies.values())).space
        if any(strategy.space != self.space for strategy in strategies.values()):
            raise ConfigError("the strategies of one run search different spaces; run them apart")
        limits = [c for strategy in strategies.values() for c in strategy.proposals.constraints]
        self.predictors: dict[str, Constraint] = {constraint.name: constraint for constraint in limits}
        metrics = [name for strategy in strategies.values() for name in strategy.objectives]
        self.objectives = tuple(objectives or dict.fromkeys([*metrics, *self.predictors]))
        self.archive = ParetoArchive(self.objectives)
        self.results: dict[Architecture, Metrics] = {}
        self.given: list[Architecture] = []
        self.shared = 0
        self.session: Session | None = None
        self.failures: list[tuple[str, Architecture, Metrics, str]] = []

    def evaluate_given(self, architectures: Sequence[Architecture], together: int) -> None:
        """Evaluate what no search proposes, so that searches are compared with it, and need not evaluate it again."""
        self.progress.searching(GIVEN)
        each = self.given = list(dict.fromkeys(architectures))
        for first in range(0, len(each), together):
            with closing(self._results(GIVEN, each[first : first + together])) as results:
                for _ in results:
                    self.progress.told()
        self._flush_failures()

    def drive(self, name: str, together: int) -> None:
        strategy = self.strategies[name]
        self.progress.searching(name)
        generation, left = strategy.generation, strategy.budget
        while asked := strategy.ask(together):
            with closing(self._results(name, asked)) as results:
                for architecture, metrics in zip(asked, results, strict=True):
                    strategy.tell(architecture, metrics)
                    self.progress.told()
                    left -= 1
            if strategy.generation != generation or strategy.finished:
                generation = strategy.generation
                self.progress.round_ended()
                if not self.journal.replaying:  # whether this run may be continued shows at its last line
                    self._write_progress(name)
        self.progress.drop(left)
        self._flush_failures()

    def _results(self, name: str, asked: Sequence[Architecture]) -> Generator[Metrics, None, None]:
        """Yield the metrics of each architecture in order: known from another search or the journal, or evaluated."""
        new = [architecture for architecture in asked if architecture not in self.results]
        replayed: list[Metrics] = []
        while len(replayed) < len(new) and (metrics := self.journal.replay(name, new[len(replayed)])) is not None:
            replayed.append(metrics)
        with closing(self._evaluated(name, new[len(replayed) :])) as evaluated:
            coming = itertools.chain(replayed, evaluated)
            for architecture in asked:
                if architecture in self.results:
                    self.shared += 1
                else:
                    self.results[architecture] = next(coming)
                    self.archive.add(architecture, _numbers(self.results[architecture]))
                yield self.results[architecture]

    def _evaluated(self, name: str, architectures: Sequence[Architecture]) -> Generator[Metrics, None, None]:
        """Metrics, in the journal before they are used; failures wait there until the next success (or the end)."""
        if not architectures:
            return
        self.progress.begin()
        self.session = self.session or Session(self.folder)
        for architecture, outcome in zip(architectures, self.evaluate_many(architectures), strict=True):
            self.progress.evaluated()
            yield self._recorded(name, architecture, outcome)

    def _recorded(self, name: str, architecture: Architecture, outcome: Mapping[str, Any] | Failure) -> Metrics:
        row = self.space.rows([architecture])  # alone: among others, its predictions may differ in the last digit
        predicted = {metric: float(constraint.values(row)[0]) for metric, constraint in self.predictors.items()}
        if isinstance(outcome, Failure):
            metrics, problem = plain_metrics(predicted), outcome.reason
        else:
            metrics = plain_metrics({**predicted, **outcome})
            needed = self.objectives if name == GIVEN else self.strategies[name].objectives
            absent = [metric for metric in needed if metrics.get(metric) is None]
            problem = f"{absent[0]} is {outcome.get(absent[0], 'missing')}" if absent else ""
        if not problem:
            self._flush_failures()
            self.journal.append(name, architecture, metrics)
            return metrics
        self.failures.append((name, architecture, metrics, problem))
        if len(self.failures) >= MAX_FAILURES:
            before = len(self.results) + 1 - len(self.failures)
            rest = f" with the same settings: the {before} results before are kept" if self.kept else ""
            raise NasExtError(
                f"{len(self.failures)} evaluations in a row failed, the last one with {problem}; mend the cause and"
                f" start again{rest}"
            )
        return metrics

    def _flush_failures(self) -> None:
        for name, architecture, metrics, problem in self.failures:
            self.journal.append(name, architecture, metrics, problem)
        self.failures = []

    def _best(self) -> dict[str, Entry]:
        found = {name: strategy.best() for name, strategy in self.strategies.items()}
        return {name: Entry(best[0], _numbers(self.results[best[0]])) for name, best in found.items() if best}

    def _best_of_all(self) -> dict[str, Entry]:
        """The best within each search's limits of everything evaluated, for whichever search it was."""
        best: dict[str, Entry] = {}
        architectures = list(self.results)
        rows = self.space.rows(architectures)
        for name, strategy in self.strategies.items():
            within = [a for a, good in zip(architectures, strategy.proposals.feasible(rows), strict=True) if good]
            entries = [Entry(architecture, _numbers(self.results[architecture])) for architecture in within]
            scored = [entry for entry in entries if strategy.metric in entry.metrics]
            if scored:
                best[name] = min(scored, key=lambda entry, metric=strategy.metric: entry.metrics[metric])  # type: ignore[misc]
        return best

    def _allowed(
        self, evaluated: Mapping[Architecture, Mapping[str, float]]
    ) -> tuple[Mapping[Architecture, Mapping[str, float]], ParetoArchive]:
        """What may be a finalist, and its front: given architectures may be outside the limits of every search."""
        if not self.given:
            return evaluated, self.archive
        rows = self.space.rows(self.given)
        within = np.any([strategy.proposals.feasible(rows) for strategy in self.strategies.values()], axis=0)
        outside = {architecture for architecture, good in zip(self.given, within, strict=True) if not good}
        allowed = {one: metrics for one, metrics in evaluated.items() if one not in outside}
        front = ParetoArchive(self.objectives)
        for architecture, metrics in allowed.items():
            front.add(architecture, metrics)
        return allowed, front

    @property
    def saved(self) -> int:
        return self.shared + sum(strategy.saved for strategy in self.strategies.values())

    def _write_progress(self, current: str) -> None:
        best = self._best()
        if current in best:
            metric = self.strategies[current].metric
            self.progress.best(metric, best[current].metrics[metric])
        searches = {
            name: {
                "generation": strategy.generation,
                "finished": strategy.finished,
                "proposed": strategy.proposed,
                "best": best[name].to_dict() if name in best else None,
                **strategy.insight(),
            }
            for name, strategy in self.strategies.items()
        }
        counts = {"evaluations": len(self.results), "saved": self.saved, "front": len(self.archive)}
        write_json(self.folder / "state.json", {**counts, "searches": searches})
        self.archive.save(self.folder / "pareto.csv")
        if self.session:
            self.session.save()

    def end_session(self) -> None:
        """However the search ends; what ended it is told, not that the disk is full for this as well."""
        with suppress(NasExtError):
            if self.session:
                self.session.save()

    def finish(self, count: int) -> SearchResult:
        self.journal.require_replayed()
        self._write_progress(list(self.strategies)[-1])
        best = self._best_of_all()
        if not best:
            where = f"see 'error' in {self.journal.path}" if self.kept else "with a folder, its journal says why"
            raise NasExtError(f"all {len(self.results)} evaluations failed; {where}")
        evaluated = {architecture: _numbers(metrics) for architecture, metrics in self.results.items()}
        allowed, front = self._allowed(evaluated)
        chosen = with_measured_before(self.folder, choose_finalists(best, front, count), allowed)
        chosen = judged(chosen, goals(self.strategies))
        save_finalists(self.folder, chosen)
        return SearchResult(self.archive, best, chosen, len(self.results), self.saved, self.journal.replayed, evaluated)


def _numbers(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}
