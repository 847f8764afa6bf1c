"""Search strategies as samplers of Optuna, for any number of workers on one storage."""
# Storages have no common lock. A worker writes its claim, then reads the claims of others. If two workers claim an
# architecture at once, at least one of them sees the other and takes the next. Workers take turns by trial number.

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nas_core.errors import ConfigError
from nas_core.optional import require
from nas_core.search import STRATEGIES
from nas_core.search.constraints import Limits, constraints_of
from nas_core.search.registry import config_of, prior_options
from nas_core.search.strategies.ranknas import Prior
from nas_core.search.strategies.shared import SharedSearch
from nas_core.space import SearchSpace
from nas_core.space.labels import parameters_of
from optuna_ext.genes import distributions_of
from optuna_ext.history import CLAIM, OPENED, History, Trials, metric_names

_optuna = require("optuna", "sampling for Optuna", "optuna")
PATIENCE_S = 5.0
"""Longest wait, in seconds, for trials with lower numbers to choose their architectures."""
POLL_S = 0.01
ROUNDS = 100
"""Largest number of architectures that a trial tries to claim before it is pruned."""


class SearchSampler(_optuna.samplers.BaseSampler):  # type: ignore[name-defined, misc]
    """Optuna sampler that proposes architectures by a search strategy.

    The objective calls :func:`~optuna_ext.suggest_architecture`; parameters that are not genes are sampled
    independently. No architecture is proposed twice, and none violates a limit. The strategy uses all finished trials
    of the storage, so workers with equal settings run one search. After the strategy's last proposal, the sampler
    mutates the best architectures. ``study.optimize`` stops when no new architecture is left.

    A failed trial is repeated up to twice, unless it was pruned or has the user attribute ``error``. Enqueued
    architectures are not checked against the limits.

    Args:
        limits: hard constraints ``{"params_m": (function of an architecture, largest value)}``, or a list of
            :class:`~nas_core.search.Constraint`.
        strategy: a name of :data:`nas_core.search.STRATEGIES`.
        metrics: names of the objective values; default: metric names of the study, or ``loss``.
        seed: random seed, the same for all workers.
        independent_sampler: sampler of parameters that are not genes; default: ``RandomSampler``.
        prior: function that scores architectures without a trial, see :class:`~nas_core.search.RankNAS`.
        options: settings of the strategy, such as ``population=20``.

    Raises:
        ConfigError, UnknownChoiceError, ConstraintError: an invalid setting or limit.
    """

    def __init__(
        self,
        space: SearchSpace,
        limits: Limits = (),
        *,
        strategy: str = "ranknas",
        metrics: Sequence[str] | None = None,
        seed: int = 0,
        independent_sampler: Any = None,
        prior: Prior | None = None,
        **options: Any,
    ) -> None:
        self.kind = STRATEGIES.get(strategy)
        if not isinstance(space, SearchSpace):
            raise ConfigError(f"space is {space!r}; expected a SearchSpace, such as get_space(name)")
        self.space, self.seed = space, seed
        self.constraints = constraints_of(space, limits)
        self.config = config_of(self.kind.name, options)
        self._metrics = metrics
        self._prior = prior_options(self.kind, prior)
        self._create(("loss", "objective_1")[: 1 + self.kind.multi_objective])  # fails early on a wrong setting
        self._independent = independent_sampler or _optuna.samplers.RandomSampler(seed=seed)
        self._distributions = distributions_of(space)
        self._history = History(space)
        self._search: SharedSearch | None = None
        self._study: Any = None
        self._first_seen: dict[Any, float] = {}
        self._lock = threading.RLock()

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        self._check_directions(study)
        return dict(self._distributions) if self._fits(study) else {}

    def sample_relative(self, study: Any, trial: Any, search_space: Mapping[str, Any]) -> dict[str, Any]:
        self._check_directions(study)
        parameters: dict[str, Any] = {}
        if search_space.keys() & self._distributions.keys():
            parameters = {name: value for name, value in self._claim(study, trial).items() if name in search_space}
        for name, distribution in search_space.items():
            if name not in self._distributions:
                parameters[name] = self._independent.sample_independent(study, trial, name, distribution)
        return parameters

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        self._check_directions(study)
        if param_name in self._distributions and not self._fits(study):
            raise ValueError(
                f"{type(self).__name__} needs a study with several objectives; create it with"
                " directions=['minimize', 'minimize']"
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Reseed the sampler of parameters that are not genes; the strategy keeps its seed."""
        self._independent.reseed_rng()

    def before_trial(self, study: Any, trial: Any) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Sequence[float] | None) -> None:
        self._independent.after_trial(study, trial, state, values)
        completed = state == _optuna.trial.TrialState.COMPLETE
        if completed and not self._distributions.keys() & trial.params.keys():
            warnings.warn(
                f"a trial has no gene of space {self.space.name!r}; call suggest_architecture in the objective",
                stacklevel=2,
            )

    def _claim(self, study: Any, trial: Any) -> dict[str, Any]:
        self._wait_for_turn(study, trial.number)
        self._search_of(study)  # resets what was cached of another study
        storage = study._storage
        with self._lock:
            for _ in range(ROUNDS):
                state, search = self._read(study), self._search_of(study)
                running = state.unavailable(trial.number) - state.results.keys()
                rng = np.random.default_rng([self.seed, 1, trial.number])
                proposal = search.next(state.results, running, state.openings, rng)
                architecture = proposal.architecture
                if architecture is None:
                    break
                if proposal.opened:
                    opened = {str(generation): list(keys) for generation, keys in proposal.opened.items()}
                    storage.set_trial_system_attr(trial._trial_id, OPENED, opened)
                storage.set_trial_system_attr(trial._trial_id, CLAIM, self.space.row(architecture).tolist())
                if architecture not in self._read(study).unavailable(trial.number):
                    return parameters_of(self.space, architecture)
                time.sleep(POLL_S * np.random.default_rng().random())
        if study._thread_local.in_optimize_loop:
            study.stop()
        raise _optuna.TrialPruned(f"space {self.space.name!r} has no new architecture within the limits")

    def _wait_for_turn(self, study: Any, number: int) -> None:
        key = study._storage, study._study_id
        while True:
            now = time.monotonic()
            earlier = [other for other in self._read(study).unclaimed if other < number]
            first_seen = [self._first_seen.setdefault((key, other), now) for other in earlier]
            if all(now - timestamp >= PATIENCE_S for timestamp in first_seen):
                return
            time.sleep(POLL_S)

    def _read(self, study: Any) -> Trials:
        signs = [-1 if direction.name == "MAXIMIZE" else 1 for direction in study.directions]
        return self._history.read(study.get_trials(deepcopy=False), metric_names(study, self._metrics), signs)

    def _search_of(self, study: Any) -> SharedSearch:
        key = study._storage, study._study_id
        if self._search is None or self._study != key:
            self._history = History(self.space)
            self._search, self._study = SharedSearch(partial(self._create, metric_names(study, self._metrics))), key
        return self._search

    def _create(self, metrics: Sequence[str]) -> Any:
        return self.kind.create(self.space, self.constraints, self.config, metrics, seed=self.seed, **self._prior)

    def _fits(self, study: Any) -> bool:
        return not self.kind.multi_objective or len(study.directions) > 1

    def _check_directions(self, study: Any) -> None:
        if len(study.directions) > 1 and not self.kind.multi_objective:
            raise ValueError(
                f"{type(self).__name__} optimises one objective, but the study has {len(study.directions)}; use"
                " MultiObjectiveSampler"
            )


class HATEvolutionSampler(SearchSampler):
    """Sampler with HAT's evolution (:class:`nas_core.search.HATEvolution`); options are those of ``EvolutionConfig``.

    By default the first 125 trials are random; for a shorter study set a smaller ``population``.
    """

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="evolution", **options)


class RankNASSampler(SearchSampler):
    """Sampler with RankNAS (:class:`nas_core.search.RankNAS`); options are those of ``RankNASConfig``."""

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="ranknas", **options)


class MultiObjectiveSampler(SearchSampler):
    """Sampler with NSGA-II (:class:`nas_core.search.MultiObjectiveEvolution`) for multi-objective studies; options
    are those of ``MultiObjectiveConfig``."""

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="multi-objective", **options)
