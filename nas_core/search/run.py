"""A search in this process: strategies are driven, results kept on disk, the run can be killed and continued."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas_core import __version__
from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files import make_folder, write_json
from nas_core.jobs import Failure
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.search.base import Strategy
from nas_core.search.constraints import Constraint
from nas_core.search.finalists import Finalist, choose_finalists, save_finalists, with_measured_before
from nas_core.search.journal import Journal, plain_metrics, settle_config
from nas_core.search.progress import Progress
from nas_core.search.sessions import Session
from nas_core.search.within import goals, judged
from nas_core.space import Architecture, space_to_dict

__all__ = ["SearchResult", "search"]

_log = logging.getLogger(__name__)

MAX_FAILURES = 10
"""A search stops when this many evaluations in a row have failed: then it is not the architectures' fault."""

Evaluate = Callable[[Architecture], Mapping[str, Any]]
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


def search(
    strategies: Mapping[str, Strategy],
    evaluate: Evaluate | None,
    out_dir: str | Path,
    *,
    evaluate_many: EvaluateMany | None = None,
    together: int = 1,
    objectives: Sequence[str] | None = None,
    finalists: int = 8,
    settings: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> SearchResult:
    """Run the strategies one after the other on one shared cache of evaluations.

    The run folder holds ``config.yaml`` (all settings), ``journal.jsonl`` (one line per evaluation; the state of the
    search, see :class:`~nas_core.search.journal.Journal`), ``state.json`` (progress, for whoever watches; never read
    back), ``pareto.csv``, ``finalists.json`` and ``finalists/*.json`` (architecture files). Called again on
    the same folder with the same settings, however the first run ended, it continues and ends with identical files.
    Two are not the same: ``search.log`` tells how far the run was at which time, a line a minute, ``sessions.json``
    when and where each part of it ran.

    Args:
        strategies: name -> strategy, all over one space; one per latency limit, for instance. An architecture evaluated
            for one is not evaluated again for another.
        evaluate: architecture -> metrics; must be deterministic for a resumed search to be identical. An exception is
            recorded as a failed evaluation, except errors of the user's (`NasExtError`), which end the search.
        evaluate_many: instead of ``evaluate``: architectures -> the outcome of each, in their order, as they come. They
            are told and recorded in that order too: the journal is the same however many are evaluated together.
        together: how many architectures ``evaluate_many`` gets at most; never more than a generation's.
        out_dir: the run folder.
        objectives: metrics of the Pareto archive, all minimised; default: those of the strategies and the limited ones.
        finalists: how many architectures to pick at the end (at least the best of each search).
        settings: whatever else decides the result (checkpoint, data); compared when a run is continued.
        notes: whatever else should stand in ``config.yaml``; not compared.
        progress: whether to say on stderr how long it will take, with a bar if that is a terminal.

    Raises:
        ConstraintError: nothing meets the limits of one of the strategies (before anything is evaluated).
        ConfigError: the folder holds a run with other settings, or is in use; both or no evaluation is given.
        DataError: what the folder holds cannot be continued, and was left as it is.
        NasExtError: evaluations keep failing, or the folder cannot be written; the journal stays good.
    """
    if not strategies:
        raise ConfigError("no strategy to run; give at least one")
    if together < 1:
        raise ConfigError(f"together is {together}; expected at least 1")
    many = functools.partial(_one_by_one, evaluate) if evaluate else evaluate_many
    if many is None or (evaluate and evaluate_many):
        raise ConfigError("a search needs either evaluate or evaluate_many, and only one of them")
    run = _Run(strategies, many, Path(out_dir), objectives)
    for strategy in strategies.values():
        strategy.start()
    make_folder(run.folder)
    with Journal(run.folder / "journal.jsonl") as run.journal:
        if run.journal.replaying and not (run.folder / "config.yaml").exists():
            raise DataError(
                f"{run.folder} holds evaluations but no config.yaml, which says what was evaluated; restore it, or give"
                " another folder"
            )
        settle_config(
            run.folder / "config.yaml",
            {
                **(settings or {}),
                "objectives": list(run.objectives),
                "finalists": finalists,
                "searches": {name: strategy.describe() for name, strategy in strategies.items()},
                "space": space_to_dict(run.space),
            },
            {"nas_ext": __version__, "numpy": np.__version__, **(notes or {})},
            {name: strategy.before for name, strategy in strategies.items()},
        )
        total = sum(strategy.budget for strategy in strategies.values())
        with Progress(run.folder / "search.log", total, together, progress) as run.progress:
            try:
                for name in strategies:
                    run.drive(name, together)
            finally:
                run.end_session()
        return run.finish(finalists)


class _Run:
    """The state of one call of :func:`search`."""

    journal: Journal
    progress: Progress

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
        self.shared = 0
        self.session: Session | None = None
        self.failures: list[tuple[str, Architecture, Metrics, str]] = []

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
                if not self.journal.replaying:  # whether this run may be continued shows at its last line
                    self._write_progress(name)
        self.progress.drop(left)
        self._flush_failures()

    def _results(self, name: str, asked: Sequence[Architecture]) -> Generator[Metrics, None, None]:
        """Of each architecture in order: known from another search, from the journal, or evaluated, all at once."""
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
            absent = [metric for metric in self.strategies[name].objectives if metrics.get(metric) is None]
            problem = f"{absent[0]} is {outcome.get(absent[0], 'missing')}" if absent else ""
        if not problem:
            self._flush_failures()
            self.journal.append(name, architecture, metrics)
            return metrics
        self.failures.append((name, architecture, metrics, problem))
        if len(self.failures) >= MAX_FAILURES:
            kept = len(self.results) + 1 - len(self.failures)
            raise NasExtError(
                f"{len(self.failures)} evaluations in a row failed, the last one with {problem}; mend the cause and"
                f" start again with the same settings: the {kept} results before are kept"
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
            raise NasExtError(f"all {len(self.results)} evaluations failed; see 'error' in {self.journal.path}")
        evaluated = {architecture: _numbers(metrics) for architecture, metrics in self.results.items()}
        chosen = with_measured_before(self.folder, choose_finalists(best, self.archive, count), evaluated)
        chosen = judged(chosen, goals(self.strategies))
        save_finalists(self.folder, chosen)
        return SearchResult(self.archive, best, chosen, len(self.results), self.saved, self.journal.replayed, evaluated)


def _numbers(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}


def _one_by_one(evaluate: Evaluate, architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
    for architecture in architectures:
        try:
            outcome: Mapping[str, Any] | Failure = dict(evaluate(architecture))
        except NasExtError:
            raise
        except Exception as error:
            _log.debug("evaluation of %s failed", architecture.key, exc_info=True)
            outcome = Failure.of(error)
        yield outcome
