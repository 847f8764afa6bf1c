"""A search in this process: strategies are driven, results kept on disk, the run can be killed and continued."""

from __future__ import annotations

import functools
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from nas_core import __version__
from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files import make_folder
from nas_core.jobs import Failure
from nas_core.search.engine import EvaluateMany, SearchEngine, SearchResult
from nas_core.search.journal import Journal, settle_config
from nas_core.search.progress import Progress
from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture, space_to_dict

_log = logging.getLogger(__name__)

Evaluate = Callable[[Architecture], Mapping[str, Any] | float]
Strategies = Strategy | Sequence[Strategy] | Mapping[str, Strategy]


def search(
    strategies: Strategies,
    evaluate: Evaluate | None,
    out_dir: str | Path | None = None,
    *,
    evaluate_many: EvaluateMany | None = None,
    together: int = 1,
    at_once: int | None = None,
    objectives: Sequence[str] | None = None,
    finalists: int = 8,
    given: Mapping[str, Architecture] | None = None,
    settings: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> SearchResult:
    """Search for the best architecture: run one strategy, or several one after the other on one cache of evaluations.

    Example:
        >>> strategy = HATEvolution(space, {"params_m": (params_m, 5.0)})
        >>> search(strategy, error).winner.architecture

    The run folder holds ``config.yaml`` (all settings), ``journal.jsonl`` (one line per evaluation; the state of the
    search, see :class:`~nas_core.search.journal.Journal`), ``state.json`` (progress, for whoever watches; never read
    back), ``pareto.csv``, ``finalists.json`` and ``finalists/*.json`` (architecture files). Called again on
    the same folder with the same settings, however the first run ended, it continues and ends with identical files.
    Two are not the same: ``search.log`` tells how far the run was at which time, a line a minute, ``sessions.json``
    when and where each part of it ran.

    Args:
        strategies: one strategy, or several over one space, one per latency limit for instance: name -> strategy, or
            a list of them, each of which is named after its limits. An architecture evaluated for one is not evaluated
            again for another.
        evaluate: architecture -> metrics, or the one number that the strategies minimise; must be deterministic for a
            resumed search to be identical. An exception is recorded as a failed evaluation, except errors of the
            user's (`NasExtError`), which end the search.
        evaluate_many: instead of ``evaluate``: architectures -> the outcome of each, in their order, as they come. They
            are told and recorded in that order too: the journal is the same however many are evaluated together.
        together: how many architectures ``evaluate_many`` gets at most; never more than a generation's.
        at_once: how many of them it evaluates at the same time, after which it is said how long one takes; default:
            all.
        out_dir: the run folder; None: nothing is kept, and the search cannot be continued.
        objectives: metrics of the Pareto archive, all minimised; default: those of the strategies and the limited ones.
        finalists: how many architectures to pick at the end (at least the best of each search).
        given: name -> an architecture that is evaluated before the searches, for comparison; those within the limits
            of a search may become finalists.
        settings: whatever else decides the result (checkpoint, data); compared when a run is continued.
        notes: whatever else should stand in ``config.yaml``; not compared.
        progress: whether to say on stderr how long it will take, with a bar if that is a terminal.

    Raises:
        ConstraintError: nothing meets the limits of one of the strategies (before anything is evaluated).
        ArchitectureError: a given architecture lies outside the space.
        ConfigError: the folder holds a run with other settings, or is in use; both or no evaluation is given; one
            number where several metrics are minimised.
        DataError: what the folder holds cannot be continued, and was left as it is.
        NasExtError: evaluations keep failing, or the folder cannot be written; the journal stays good.
    """
    strategies = _named(strategies)
    if together < 1:
        raise ConfigError(f"together is {together}; expected at least 1")
    many = functools.partial(_one_by_one, evaluate, _sole_metric(strategies)) if evaluate else evaluate_many
    if many is None or (evaluate and evaluate_many):
        raise ConfigError("a search needs either evaluate or evaluate_many, and only one of them")
    for strategy in strategies.values():
        strategy.start()
    with (
        nullcontext(out_dir) if out_dir is not None else tempfile.TemporaryDirectory(prefix="nas-ext-search-") as folder
    ):
        run = SearchEngine(strategies, many, Path(folder), objectives)
        return _driven(
            run,
            together,
            at_once or together,
            finalists,
            given or {},
            settings or {},
            notes or {},
            progress,
            kept=out_dir is not None,
        )


def _driven(
    run: SearchEngine,
    together: int,
    at_once: int,
    finalists: int,
    given: Mapping[str, Architecture],
    settings: Mapping[str, Any],
    notes: Mapping[str, Any],
    progress: bool,
    kept: bool,
) -> SearchResult:
    strategies = run.strategies
    run.kept = kept
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
                **settings,
                "objectives": list(run.objectives),
                "finalists": finalists,
                **({"given": {name: architecture.key for name, architecture in given.items()}} if given else {}),
                "searches": {name: strategy.describe() for name, strategy in strategies.items()},
                "space": space_to_dict(run.space),
            },
            {"nas_ext": __version__, "numpy": np.__version__, **notes},
        )
        total = len(set(given.values())) + sum(strategy.budget for strategy in strategies.values())
        with Progress(run.folder / "search.log", total, at_once, progress, kept) as run.progress:
            try:
                run.evaluate_given([run.space.validate(each) for each in given.values()], together)
                for name in strategies:
                    run.drive(name, together)
            finally:
                run.end_session()
        return run.finish(finalists)


def _named(strategies: Strategies) -> dict[str, Strategy]:
    """Name -> strategy; those without a name are called by their limits, as the command line calls them."""
    several = [strategies] if isinstance(strategies, Strategy) or not isinstance(strategies, Iterable) else strategies
    members: list[Any] = list(strategies.values() if isinstance(strategies, Mapping) else several)
    for one in members:
        if not isinstance(one, Strategy):
            raise ConfigError(f"{one!r} is no strategy; expected one that was made, such as RandomSearch(space)")
    if isinstance(strategies, Mapping):
        named = dict(strategies)
        if wrong := [name for name in named if not isinstance(name, str)]:
            raise ConfigError(f"a strategy is named {wrong[0]!r}; expected a text")
    else:
        named = {" ".join(c.label for c in one.proposals.constraints) or "unlimited": one for one in members}
    if len(set(map(id, members))) < len(members):
        raise ConfigError("the same strategy is given twice; make one for each search")
    if len(named) < len(members):
        raise ConfigError("two of the strategies have the same limits; give a dictionary: name -> strategy")
    if not named:
        raise ConfigError("no strategy to run; give at least one")
    for name, one in named.items():
        if one.finished or one.waiting or one.best():
            raise ConfigError(f"the strategy of {name!r} has searched before; make a new one for each search")
    return named


def _sole_metric(strategies: Mapping[str, Strategy]) -> str:
    """What all strategies minimise; empty if that are several metrics."""
    metrics = {name for strategy in strategies.values() for name in strategy.objectives}
    return metrics.pop() if len(metrics) == 1 else ""


def _one_by_one(
    evaluate: Evaluate, metric: str, architectures: Sequence[Architecture]
) -> Iterator[Mapping[str, Any] | Failure]:
    for architecture in architectures:
        try:
            found = evaluate(architecture)
            if not (metric or isinstance(found, Mapping)):
                raise ConfigError(
                    f"evaluate gave {found!r}, but several metrics are minimised; expected a dictionary: name -> number"
                )
            outcome: Mapping[str, Any] | Failure = dict(found) if isinstance(found, Mapping) else {metric: found}
        except NasExtError:
            raise
        except Exception as error:
            _log.debug("evaluation of %s failed", architecture.key, exc_info=True)
            outcome = Failure.of(error)
        yield outcome
