"""Search in this process, with results on disk."""

from __future__ import annotations

import functools
import itertools
import logging
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nas_core import __version__
from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.writing import make_folder, write_json
from nas_core.jobs import Failure
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.search.finalists import (
    Finalist,
    choose_finalists,
    goals_of,
    restore_measurements,
    save_finalists,
    select_best,
)
from nas_core.search.journal import Journal, plain_metrics, settle_config
from nas_core.search.progress import Progress
from nas_core.search.sessions import Session
from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture
from nas_core.space.files import space_to_dict

_log = logging.getLogger(__name__)

MAX_FAILURES = 10
"""Number of consecutive failed evaluations that stops a search."""

T = TypeVar("T")
Metrics = dict[str, float | None]
Evaluate = Callable[[Architecture], Mapping[str, Any] | float]
EvaluateMany = Callable[[Sequence[Architecture]], Iterable[Mapping[str, Any] | Failure]]
Strategies = Strategy | Sequence[Strategy] | Mapping[str, Strategy]


@dataclass(frozen=True)
class SearchResult:
    """Result of a finished search."""

    archive: ParetoArchive
    best_by_search: dict[str, Entry]
    """Name of a search -> best architecture; absent if all evaluations failed."""
    finalists: list[Finalist]
    """Best architecture of each search, then others spaced evenly along the Pareto front."""
    evaluations: int
    """Number of evaluated architectures, earlier sessions included."""
    cache_hits: int
    """Number of proposals that already had a result."""
    replayed: int
    """Number of results read from the journal."""
    evaluated: Mapping[Architecture, Mapping[str, float]]
    """Architecture -> metrics; a failed evaluation lacks some metrics."""

    @property
    def best(self) -> Entry:
        """Best architecture, if there was one search.

        Raises:
            ConfigError: there were several searches; use :attr:`best_by_search`.
        """
        if len(self.best_by_search) != 1:
            raise ConfigError(
                f"the run has {len(self.best_by_search)} searches; choose the result of one:"
                f" best_by_search[{'] or best_by_search['.join(map(repr, self.best_by_search))}]"
            )
        return next(iter(self.best_by_search.values()))


def search(
    strategies: Strategies,
    evaluate: Evaluate | None,
    out_dir: str | Path | None = None,
    *,
    evaluate_many: EvaluateMany | None = None,
    batch_size: int = 1,
    objectives: Sequence[str] | None = None,
    finalists: int = 8,
    settings: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> SearchResult:
    """Run search strategies one after the other; each architecture is evaluated once.

    Example:
        >>> strategy = HATEvolution(space, {"params_m": (params_m, 5.0)})
        >>> search(strategy, evaluate).best.architecture

    The run folder contains ``config.yaml`` (settings), ``journal.jsonl`` (one line per evaluation), ``state.json``
    (progress), ``pareto.csv``, ``finalists.json``, and architecture files: ``finalists/*.json`` and, after a single
    search, ``best.json``. The same call resumes an interrupted run and writes identical files, except
    ``sessions.json``, which contains times.

    Args:
        strategies: one strategy, a dictionary name -> strategy, or a list of strategies, named by their limits.
        evaluate: function that returns an architecture's metrics, or the minimised metric as a number. A `NasExtError`
            ends the search; other exceptions are failed evaluations.
        evaluate_many: alternative to ``evaluate``: function that returns the metrics of several architectures, in
            order.
        batch_size: batch size of ``evaluate_many``.
        out_dir: run folder; None keeps no files.
        objectives: metrics of the Pareto front; default: the strategies' objectives and the limited metrics.
        finalists: number of architectures chosen at the end, the best of each search included.
        settings: further settings that must be equal when a run is resumed.
        notes: further content of ``config.yaml``, which may change.
        progress: print progress to stderr.

    Raises:
        ConstraintError: no architecture meets the limits.
        ConfigError: arguments contradict each other, or the folder is in use or contains a run with other settings.
        DataError: a file of the run folder is damaged.
        NasExtError: 10 consecutive evaluations failed, or all.
    """
    named = _named(strategies)
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}; expected at least 1")
    metrics = {name for strategy in named.values() for name in strategy.objectives}
    metric = metrics.pop() if len(metrics) == 1 else ""
    evaluator = functools.partial(_evaluate_each, evaluate, metric) if evaluate else evaluate_many
    if evaluator is None or (evaluate and evaluate_many):
        raise ConfigError("search got both or none of evaluate and evaluate_many; expected one of them")
    for strategy in named.values():
        strategy.start()
    with (
        nullcontext(out_dir) if out_dir is not None else tempfile.TemporaryDirectory(prefix="nas-ext-search-") as folder
    ):
        engine = _Engine(named, evaluator, Path(folder), objectives, batch_size, persistent=out_dir is not None)
        return engine.run(finalists, settings or {}, notes or {}, progress)


def _named(strategies: Strategies) -> dict[str, Strategy]:
    if isinstance(strategies, Mapping):
        named = dict(strategies)
    else:
        members = [strategies] if isinstance(strategies, Strategy) else list(strategies)
        named = {" ".join(c.label for c in member.proposals.constraints) or "unlimited": member for member in members}
        if len(named) < len(members):
            raise ConfigError("two strategies of the list have the same limits; give a dictionary: name -> strategy")
    if not named:
        raise ConfigError("the search has no strategy; give at least one")
    for name, strategy in named.items():
        if strategy.finished or strategy.waiting or strategy.best():
            raise ConfigError(f"the strategy of {name!r} was used in an earlier search; create a new one")
    if any(strategy.space != next(iter(named.values())).space for strategy in named.values()):
        raise ConfigError("the strategies have different search spaces; run a separate search for each space")
    return named


def _evaluate_each(
    evaluate: Evaluate, metric: str, architectures: Sequence[Architecture]
) -> Iterator[Mapping[str, Any] | Failure]:
    for architecture in architectures:
        value = attempt(evaluate, architecture)
        if not (metric or isinstance(value, Mapping | Failure)):
            raise ConfigError(
                f"evaluate returned {value!r}, but several metrics are minimised; expected a dictionary: name -> number"
            )
        yield value if isinstance(value, Mapping | Failure) else {metric: value}


def attempt(evaluate: Callable[[Architecture], T], architecture: Architecture) -> T | Failure:
    """Evaluate an architecture; return a failure for an exception other than a NasExtError."""
    try:
        return evaluate(architecture)
    except NasExtError:
        raise
    except Exception as error:
        _log.debug("evaluation of %s failed", architecture.key, exc_info=True)
        return Failure.of(error)


class _Engine:
    journal: Journal
    progress: Progress

    def __init__(
        self,
        strategies: Mapping[str, Strategy],
        evaluate_many: EvaluateMany,
        folder: Path,
        objectives: Sequence[str] | None,
        batch_size: int,
        persistent: bool,
    ) -> None:
        self.strategies, self.evaluate_many, self.folder = strategies, evaluate_many, folder
        self.batch_size, self.persistent = batch_size, persistent
        self.space = next(iter(strategies.values())).space
        limits = [c for strategy in strategies.values() for c in strategy.proposals.constraints]
        self.predictors = {constraint.name: constraint for constraint in limits}
        metrics = [name for strategy in strategies.values() for name in strategy.objectives]
        self.objectives = tuple(objectives or dict.fromkeys([*metrics, *self.predictors]))
        self.archive = ParetoArchive(self.objectives)
        self.results: dict[Architecture, Metrics] = {}
        self.shared = 0
        self.session: Session | None = None
        self.failures: list[tuple[str, Architecture, Metrics, str]] = []

    def run(
        self,
        finalists: int,
        settings: Mapping[str, Any],
        notes: Mapping[str, Any],
        progress: bool,
    ) -> SearchResult:
        make_folder(self.folder)
        config = self.folder / "config.yaml"
        with Journal(self.folder / "journal.jsonl") as self.journal:
            if self.journal.replaying and not config.exists():
                raise DataError(
                    f"{self.folder} contains a journal of evaluations but no config.yaml with their settings; restore"
                    " config.yaml, or give another folder"
                )
            settle_config(
                config,
                {
                    **settings,
                    "objectives": list(self.objectives),
                    "finalists": finalists,
                    "searches": {name: strategy.describe() for name, strategy in self.strategies.items()},
                    "space": space_to_dict(self.space),
                },
                {"nas_ext": __version__, "numpy": np.__version__, **notes},
            )
            total = sum(strategy.budget for strategy in self.strategies.values())
            with Progress(total, progress) as self.progress:
                try:
                    for name in self.strategies:
                        self._drive(name)
                finally:
                    with suppress(NasExtError):  # a full disk must not hide the first error
                        if self.session:
                            self.session.save()
            return self._finish(finalists)

    def _drive(self, name: str) -> None:
        strategy = self.strategies[name]
        self.progress.searching(name)
        generation, remaining = strategy.generation, strategy.budget
        while architectures := strategy.ask(self.batch_size):
            with closing(self._results(name, architectures)) as results:
                for architecture, metrics in zip(architectures, results, strict=True):
                    strategy.tell(architecture, metrics)
                    self.progress.advance()
                    remaining -= 1
            if strategy.generation != generation or strategy.finished:
                generation = strategy.generation
                if not self.journal.replaying:  # the last line decides whether this run can be continued
                    self._write_progress(name)
        self.progress.drop(remaining)
        self._flush_failures()

    def _results(self, name: str, architectures: Sequence[Architecture]) -> Generator[Metrics, None, None]:
        new = [architecture for architecture in architectures if architecture not in self.results]
        replayed: list[Metrics] = []
        while len(replayed) < len(new) and (metrics := self.journal.replay(name, new[len(replayed)])) is not None:
            replayed.append(metrics)
        with closing(self._evaluated(name, new[len(replayed) :])) as evaluated:
            metrics_iterator = itertools.chain(replayed, evaluated)
            for architecture in architectures:
                if architecture in self.results:
                    self.shared += 1
                else:
                    self.results[architecture] = next(metrics_iterator)
                    self.archive.add(architecture, _numbers(self.results[architecture]))
                yield self.results[architecture]

    def _evaluated(self, name: str, architectures: Sequence[Architecture]) -> Generator[Metrics, None, None]:
        if not architectures:
            return
        self.progress.start_clock()
        self.session = self.session or Session(self.folder)
        for architecture, outcome in zip(architectures, self.evaluate_many(architectures), strict=True):
            self.progress.evaluated()
            yield self._recorded(name, architecture, outcome)

    def _recorded(self, name: str, architecture: Architecture, outcome: Mapping[str, Any] | Failure) -> Metrics:
        row = self.space.rows([architecture])  # one row: in a batch, predictions may differ in the last digit
        predicted = {metric: float(constraint.values(row)[0]) for metric, constraint in self.predictors.items()}
        if isinstance(outcome, Failure):
            metrics, problem = plain_metrics(predicted), outcome.reason
        else:
            metrics = plain_metrics({**predicted, **outcome})
            missing = [metric for metric in self.strategies[name].objectives if metrics.get(metric) is None]
            problem = f"{missing[0]} is {outcome.get(missing[0], 'missing')}" if missing else ""
        if not problem:
            self._flush_failures()
            self.journal.append(name, architecture, metrics)
            return metrics
        self.failures.append((name, architecture, metrics, problem))
        if len(self.failures) >= MAX_FAILURES:
            before = len(self.results) + 1 - len(self.failures)
            note = f" with the same settings: the {before} earlier results are kept" if self.persistent else ""
            raise NasExtError(
                f"{len(self.failures)} evaluations in a row failed, the last one with {problem}; fix the cause and"
                f" start again{note}"
            )
        return metrics

    def _flush_failures(self) -> None:
        for name, architecture, metrics, problem in self.failures:
            self.journal.append(name, architecture, metrics, problem)
        self.failures = []

    @property
    def cache_hits(self) -> int:
        return self.shared + sum(strategy.cache_hits for strategy in self.strategies.values())

    def _write_progress(self, current: str) -> None:
        members = {name: strategy.best() for name, strategy in self.strategies.items()}
        best = {name: Entry(member[0], _numbers(self.results[member[0]])) for name, member in members.items() if member}
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
        counts = {"evaluations": len(self.results), "cache_hits": self.cache_hits, "front": len(self.archive)}
        write_json(self.folder / "state.json", {**counts, "searches": searches})
        self.archive.save(self.folder / "pareto.csv")
        if self.session:
            self.session.save()

    def _finish(self, count: int) -> SearchResult:
        self.journal.require_replayed()
        self._write_progress(list(self.strategies)[-1])
        evaluated = {architecture: _numbers(metrics) for architecture, metrics in self.results.items()}
        rows = self.space.rows(list(evaluated))
        best: dict[str, Entry] = {}
        for name, strategy in self.strategies.items():
            entries = [
                Entry(architecture, metrics)
                for (architecture, metrics), feasible in zip(
                    evaluated.items(), strategy.proposals.feasible(rows), strict=True
                )
                if feasible and strategy.metric in metrics
            ]
            if entries:
                best[name] = min(entries, key=lambda entry, metric=strategy.metric: entry.metrics[metric])  # type: ignore[misc]
        if not best:
            hint = f"see 'error' in {self.journal.path}" if self.persistent else "give out_dir to record the reasons"
            raise NasExtError(f"all {len(self.results)} evaluations failed; {hint}")
        finalists = restore_measurements(self.folder, choose_finalists(best, self.archive, count), evaluated)
        finalists = select_best(finalists, goals_of(self.strategies))
        save_finalists(self.folder, finalists)
        return SearchResult(
            self.archive, best, finalists, len(self.results), self.cache_hits, self.journal.replayed, evaluated
        )


def _numbers(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}
