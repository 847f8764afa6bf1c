"""Search strategies as samplers of Optuna, for any number of workers on one storage.

Optuna makes a trial first and asks for its parameters later, and its storages have no lock to share. So a worker writes
down what it takes and looks again whether somebody else took it meanwhile; of two that take the same at once, at least
one sees the other and takes the next. That this is seldom needed, workers take their turn by the numbers of trials.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, unknown_choice
from nas_core.search import STRATEGIES
from nas_core.search.constraints import Limits, constraints_of
from nas_core.search.registry import config_of, strategy_options
from nas_core.search.strategies.shared import SharedSearch
from nas_core.space import SearchSpace
from nas_core.space.labels import parameters_of
from optuna_ext.beats import Watch
from optuna_ext.compat import optuna_module
from optuna_ext.genes import distributions_of
from optuna_ext.history import CLAIM, OPENED, History, Read, metric_names

_optuna = optuna_module("sampling for Optuna")
PATIENCE_S = 5.0
"""A worker waits so long at most for those before it to take an architecture."""
POLL_S = 0.01
ROUNDS = 100
"""So often a worker takes another architecture, as somebody else has taken the same one."""


class SearchSampler(_optuna.samplers.BaseSampler):  # type: ignore[name-defined, misc]
    """Any search strategy as a sampler, by its name.

    The objective takes its architecture with :func:`~optuna_ext.suggest_architecture`; parameters that are no genes are
    drawn independently. No architecture is proposed twice, whatever other workers are doing, and none that violates a
    limit. The state of the search is the storage: finished trials, also those that were there before, are what the
    strategy learns from, and every worker given the same settings goes the same way. When the strategy has asked for
    all it wants, children of the best follow; when nothing new is left, trials are pruned and ``study.optimize`` stops.

    A trial that failed is tried again, twice, since its worker may have been killed; where the user attribute ``error``
    says why (as :func:`~optuna_ext.as_objective` does), and where it was pruned, its architecture is not asked for
    again. Trials of ``as_objective`` give signs of life; those that cease to are failed here. Genes that are enqueued
    (``study.enqueue_trial``) are taken as they are, whether or not they meet the limits or were evaluated before.

    Args:
        space: the search space.
        limits: hard limits, as ``{"params_m": (function of an architecture, largest value)}``; or constraints.
        strategy: a name of :data:`nas_core.search.STRATEGIES`.
        metrics: names of the study's values; default: those of the study, else ``loss``.
        seed: of the search, the same for all workers.
        max_tries: cap of each rejection sampling, in candidates.
        independent_sampler: draws parameters that are no genes; default: at random.
        options: settings of the strategy by name, as ``population=20``.

    Raises:
        UnknownChoiceError: no such strategy or option. ConfigError: a setting out of range. ConstraintError: no limit.
        MissingHostError: Optuna is not installed.
    """

    def __init__(
        self,
        space: SearchSpace,
        limits: Limits = (),
        *,
        strategy: str = "evolution",
        metrics: Sequence[str] | None = None,
        seed: int = 0,
        max_tries: int = 20_000,
        independent_sampler: Any = None,
        **options: Any,
    ) -> None:
        self.kind = STRATEGIES.get(strategy)
        known = [option.name for option in strategy_options(self.kind.name)]
        for name in options:
            if name not in known:
                raise unknown_choice(f"option of strategy {strategy}", name, known)
        if not isinstance(space, SearchSpace):
            raise ConfigError(
                f"the space is {space!r}; expected a SearchSpace, as get_space(name) or space_of gives it"
            )
        self.space, self.seed, self.max_tries = space, seed, max_tries
        self.constraints = constraints_of(space, limits)
        config = config_of(self.kind.name, options)
        self.config = config if space.slots.depth_genes else self.kind.suited(config, options, space)
        self._metrics = metrics
        self._made(("loss", "objective_1")[: 1 + self.kind.weighs_several])  # a wrong setting is said now
        self._independent = independent_sampler or _optuna.samplers.RandomSampler(seed=seed)
        self._distributions = distributions_of(space)
        self._history, self._watch = History(space), Watch()
        self._search: SharedSearch | None = None
        self._study: Any = None
        self._undecided: dict[Any, float] = {}
        self._lock = threading.RLock()

    # -- what Optuna calls -------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """All genes; none where the study has not as many values as the strategy weighs."""
        self._refuse_several(study)
        return dict(self._distributions) if self._fits(study) else {}

    def sample_relative(self, study: Any, trial: Any, search_space: Mapping[str, Any]) -> dict[str, Any]:
        """The genes of the next architecture, those of layers that exist; others independently.

        Raises:
            ValueError: the study has several values, and the strategy minimises one. TrialPruned: nothing new is left.
            ConstraintError: nothing meets the limits.
        """
        self._refuse_several(study)
        found: dict[str, Any] = {}
        if search_space.keys() & self._distributions.keys():
            found = {name: value for name, value in self._taken(study, trial).items() if name in search_space}
        for name, distribution in search_space.items():
            if name not in self._distributions:
                found[name] = self._independent.sample_independent(study, trial, name, distribution)
        return found

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """A parameter that is no gene, or a gene of a layer that the architecture does not have.

        Raises:
            ValueError: the study has several values and the strategy minimises one, or the other way round.
        """
        self._refuse_several(study)
        if param_name in self._distributions and not self._fits(study):
            raise ValueError(f"{type(self).__name__} weighs several values, but the study has one; give directions")
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Only parameters that are no genes are drawn anew; the search is the same in every worker."""
        self._independent.reseed_rng()

    def before_trial(self, study: Any, trial: Any) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Sequence[float] | None) -> None:
        self._independent.after_trial(study, trial, state, values)

    # -- the search --------------------------------------------------------------------------------------------------

    def _taken(self, study: Any, trial: Any) -> dict[str, Any]:
        """Take an architecture for a trial, and write that down before it is used."""
        self._wait_for_turn(study, trial.number)
        self._of(study)  # with the watch of this study
        self._watch.fail_stale(study, study.get_trials(deepcopy=False))
        storage = study._storage
        with self._lock:
            for _ in range(ROUNDS):
                read, search = self._read(study), self._of(study)
                others = read.taken(trial.number) - read.results.keys()
                rng = np.random.default_rng([self.seed, 1, trial.number])
                proposal = search.next(read.results, others, read.openings, rng)
                architecture = proposal.architecture
                if architecture is None:
                    break
                if proposal.opened:
                    opened = {str(generation): list(keys) for generation, keys in proposal.opened.items()}
                    storage.set_trial_system_attr(trial._trial_id, OPENED, opened)
                storage.set_trial_system_attr(trial._trial_id, CLAIM, self.space.row(architecture).tolist())
                if architecture not in self._read(study).taken(trial.number):
                    return parameters_of(self.space, architecture)
                time.sleep(POLL_S * np.random.default_rng().random())
        if study._thread_local.in_optimize_loop:
            study.stop()
        raise _optuna.TrialPruned(f"nothing new is left of space {self.space.name!r} within the limits")

    def _wait_for_turn(self, study: Any, number: int) -> None:
        """Until all earlier trials have an architecture, or have had time enough to take one since they were seen here:
        machines' clocks differ."""
        key = study._storage, study._study_id
        while True:
            now = time.monotonic()
            earlier = [other for other in self._read(study).undecided if other < number]
            since = [self._undecided.setdefault((key, other), now) for other in earlier]
            if all(now - seen >= PATIENCE_S for seen in since):
                return
            time.sleep(POLL_S)

    def _read(self, study: Any) -> Read:
        signs = [-1 if direction.name == "MAXIMIZE" else 1 for direction in study.directions]
        return self._history.read(study.get_trials(deepcopy=False), metric_names(study, self._metrics), signs)

    def _of(self, study: Any) -> SharedSearch:
        """The search of a study; a sampler may be handed from one to the next."""
        key = study._storage, study._study_id
        if self._search is None or self._study != key:
            self._history, self._watch = History(self.space), Watch()
            self._search, self._study = SharedSearch(partial(self._made, metric_names(study, self._metrics))), key
        return self._search

    def _made(self, metrics: Sequence[str]) -> Any:
        common = {"seed": self.seed, "max_tries": self.max_tries}
        return self.kind.made(self.space, self.constraints, self.config, metrics, **common)

    def _fits(self, study: Any) -> bool:
        return not self.kind.weighs_several or len(study.directions) > 1

    def _refuse_several(self, study: Any) -> None:
        if len(study.directions) > 1 and not self.kind.weighs_several:
            raise ValueError(
                f"{type(self).__name__} minimises one value, but the study has {len(study.directions)}; take"
                " MultiObjectiveSampler"
            )
