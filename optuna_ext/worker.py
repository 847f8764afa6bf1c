"""One search of many machines: each runs the same command, and a storage of Optuna hands out the evaluations.

Every worker goes through the whole search by itself; as strategies follow from results alone, all ask for the same
architectures. What one has evaluated, the others read. An architecture is taken by making its trial, which is one step
in any storage; of two workers that take one at once, the trial with the lower number stands and the other is withdrawn.
So every worker ends with the whole run in its folder, and any of them may be killed, or join, at any time.

An evaluation that fails may be the architecture's fault or the worker's. So a worker keeps its failures to itself until
its next success shows that it works; where nothing else is left to evaluate, it evaluates once more what succeeded
before. After too many failures in a row it leaves their architectures to others, and ends.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure
from nas_core.search.engine import MAX_FAILURES
from nas_core.search.journal import plain_metrics
from nas_core.space import Architecture, SearchSpace
from nas_core.space.labels import parameters_of
from optuna_ext.beats import BEAT, Heart, Watch, give_up
from optuna_ext.compat import optuna_module
from optuna_ext.genes import distributions_of
from optuna_ext.history import CLAIM, ERROR, FAILING, WITHDRAWN, History, Read
from optuna_ext.storage import is_of_storage, open_study, patiently, reading

_log = logging.getLogger(__name__)
TOKEN = "nas_ext:token"
"""System attribute of a trial, by which its worker knows it."""
CHOICES = 16
"""A worker takes one of the first so many that are free, at random, so that two seldom take the same."""
LOST = "the workers that evaluated it were lost"

STALE_S = 120.0
"""Seconds without a sign of life: less than elsewhere, as a worker that was taken for lost just goes on."""

Evaluate = Callable[[Architecture], Mapping[str, Any]]


class _Failed(NamedTuple):
    """A trial whose evaluation failed here, and which is kept alive until it shows whose fault that was."""

    trial: Any
    architecture: Architecture
    reason: str
    heart: Heart


class SharedEvaluations:
    """Evaluations that the workers of a study have in common: ``evaluate_many`` of :func:`nas_core.search.search`, and
    the ``shared_search`` of :data:`nas_core.adapters.OPTUNA`.

    Args:
        storage: URL of a storage of Optuna, or the path of a journal file.
        study: its name.
        space: of the architectures.
        evaluate: an architecture's metrics, here.
        metrics: those that become the values of trials, all minimised; the others are user attributes.
        settings: what decides the results, as plain data; workers with others are refused.
        stale_s: seconds without a sign of life after which a worker is lost, and its architecture free again.
        poll_s: seconds between two looks, where all is under way.

    Raises:
        ConfigError: the storage cannot be opened, or the study is one of another search. MissingHostError: Optuna is
            not installed.
    """

    together = 10_000
    """Enough for any generation: workers share out a whole one."""

    def __init__(
        self,
        storage: str,
        study: str,
        space: SearchSpace,
        evaluate: Evaluate,
        metrics: Sequence[str],
        settings: Mapping[str, Any],
        *,
        stale_s: float = STALE_S,
        poll_s: float = 0.5,
    ) -> None:
        if not stale_s > 0:
            raise ConfigError(f"a worker is lost after {stale_s} s; expected more than 0")
        self.space, self.evaluate, self.metrics = space, evaluate, tuple(metrics)
        self.study = patiently(reading(open_study), storage, study, metrics, settings)
        self.stale_s, self.poll_s = stale_s, poll_s
        self.evaluated = 0
        """Architectures that this worker has evaluated."""
        self._optuna = optuna_module("a shared search")
        self._distributions = distributions_of(space)
        self._history, self._watch = History(space), Watch()
        self._rng = np.random.default_rng()
        self._failed: list[_Failed] = []
        self._in_a_row = 0

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        """Metrics of each architecture, or why it failed, in order; those that nobody has are evaluated here.

        Raises:
            NasExtError: too many evaluations in a row failed here, or the evaluation says that an input is wrong.
            ConfigError: the storage was not reached for some minutes.
        """
        try:
            yield from self._outcomes(architectures)
        finally:
            self._withdraw_failed()

    def _outcomes(self, architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        told = 0
        while told < len(architectures):
            read = patiently(reading(self._read))
            while told < len(architectures) and architectures[told] in read.results:
                metrics = read.results[architectures[told]]
                yield Failure(read.errors.get(architectures[told], LOST)) if metrics is None else metrics
                told += 1
            held = {*read.results, *read.held.values()}
            free = [one for one in architectures[told:] if one not in held]
            if free:
                self.take_unless_taken(free[int(self._rng.integers(min(len(free), CHOICES)))])
            elif told < len(architectures) and not (self._failed and self._tried_again(read)):
                time.sleep(self.poll_s)

    def _read(self) -> Read:
        trials = self.study.get_trials(deepcopy=False)
        if failed := self._watch.fail_stale(self.study, trials):
            _log.warning("no sign of life of trial %s: its architecture is free again", ", ".join(map(str, failed)))
            trials = self.study.get_trials(deepcopy=False)
        trials = [trial for trial in trials if trial.state.name != "WAITING"]
        return self._history.read(trials, self.metrics, [1] * len(self.metrics))

    def take_unless_taken(self, architecture: Architecture) -> None:
        """Evaluate an architecture and write its result down, unless another worker has it.

        Raises:
            NasExtError: see :meth:`__call__`.
        """
        trial = self._take(architecture)
        if trial is None:
            return
        heart = Heart(self.study._storage, trial._trial_id, self.stale_s)
        try:
            heart.start()
            outcome = self._outcome(architecture)
            self.evaluated += 1
            if isinstance(outcome, Failure):
                self._set(trial, FAILING, outcome.reason)
                self._failed.append(_Failed(trial, architecture, outcome.reason, heart))
                self._count_failure(outcome.reason)
                return
            self._write(trial, outcome)
            heart.stop()
            self._succeeded()
        except self._optuna.exceptions.UpdateFinishedTrialError:
            heart.stop()
            _log.warning("trial %d was taken for lost; another worker has its architecture", trial.number)
        except BaseException:
            heart.stop()
            self._withdraw(trial)
            raise

    def _write(self, trial: Any, outcome: Mapping[str, float] | Failure) -> None:
        """End a trial with its result, as its last attribute is there."""
        attributes = {ERROR: outcome.reason} if isinstance(outcome, Failure) else outcome
        for name, value in attributes.items():
            patiently(self.study._storage.set_trial_user_attr, trial._trial_id, name, value)
        if isinstance(outcome, Failure):
            patiently(give_up, self.study, trial.number)
        else:
            values = [outcome[name] for name in self.metrics]
            patiently(partial(self.study.tell, trial.number, values, skip_if_finished=True))

    def _set(self, trial: Any, name: str, value: Any) -> None:
        patiently(self.study._storage.set_trial_system_attr, trial._trial_id, name, value)

    # -- failures ----------------------------------------------------------------------------------------------------

    def _count_failure(self, reason: str) -> None:
        self._in_a_row += 1
        if self._in_a_row >= MAX_FAILURES:
            self._withdraw_failed()
            raise NasExtError(
                f"{MAX_FAILURES} evaluations in a row failed here, the last one with {reason}; mend the cause and start"
                " again: all results are kept, and other workers may take what failed"
            )

    def _succeeded(self) -> None:
        """This worker works: what failed here fails for all."""
        self._in_a_row = 0
        while self._failed:
            failed = self._failed.pop()
            try:
                with suppress(self._optuna.exceptions.UpdateFinishedTrialError):  # another worker has it by now
                    self._write(failed.trial, Failure(failed.reason))
            finally:
                failed.heart.stop()

    def _tried_again(self, read: Read) -> bool:
        """Nothing is left but what failed here: evaluate what succeeded before, else what failed. False if others are
        under way with what may succeed."""
        good = [architecture for architecture, metrics in read.results.items() if metrics is not None]
        if not good and read.held.keys() - read.failing:
            return False
        failed = None if good else self._failed[self._in_a_row % len(self._failed)]
        architecture = failed.architecture if failed else good[int(self._rng.integers(len(good)))]
        outcome = self._outcome(architecture)
        if isinstance(outcome, Failure):
            self._count_failure(outcome.reason)
            return True
        if failed:
            with suppress(self._optuna.exceptions.UpdateFinishedTrialError):
                self._write(failed.trial, outcome)
            self._failed.remove(failed)
            failed.heart.stop()
        self._succeeded()
        return True

    def _withdraw_failed(self) -> None:
        """Leave what failed here to other workers."""
        self._in_a_row = 0
        while self._failed:
            failed = self._failed.pop()
            failed.heart.stop()
            self._withdraw(failed.trial)

    def _withdraw(self, trial: Any) -> None:
        """Give a trial up, so that others take its architecture at once; without the storage, when it is lost."""
        try:
            self.study._storage.set_trial_system_attr(trial._trial_id, WITHDRAWN, True)
            give_up(self.study, trial.number)
        except self._optuna.exceptions.UpdateFinishedTrialError:
            return
        except Exception as error:
            if not is_of_storage(error):
                raise
            _log.warning("trial %d is free again when it is taken for lost: the storage is away", trial.number)

    # -- one evaluation ----------------------------------------------------------------------------------------------

    def _outcome(self, architecture: Architecture) -> dict[str, float] | Failure:
        try:
            metrics = plain_metrics(self.evaluate(architecture))
        except NasExtError:
            raise
        except Exception as error:
            _log.debug("evaluation of %s failed", architecture.key, exc_info=True)
            return Failure.of(error)
        for name in self.metrics:
            if metrics.get(name) is None:
                return Failure(f"{name} is missing or no number")
        return {name: value for name, value in metrics.items() if value is not None}

    def _take(self, architecture: Architecture) -> Any:
        """Make the architecture's trial; None if another worker was faster."""
        token, parameters = uuid.uuid4().hex, parameters_of(self.space, architecture)
        row = self.space.row(architecture).tolist()
        made = self._optuna.create_trial(
            state=self._optuna.trial.TrialState.RUNNING,
            params=parameters,
            distributions={name: self._distributions[name] for name in parameters},
            user_attrs={"architecture": architecture.key},
            system_attrs={TOKEN: token, CLAIM: row, BEAT: [0, self.stale_s]},
        )
        patiently(self.study.add_trial, made)
        trials = patiently(partial(self.study.get_trials, deepcopy=False))
        mine, *twice = [trial for trial in trials if trial.system_attrs.get(TOKEN) == token]
        for trial in twice:  # the storage went away after it was made, before it said so
            self._withdraw(trial)
        before = [trial for trial in trials if trial.number < mine.number and trial.state.name != "WAITING"]
        earlier = self._history.read(before, self.metrics, [1] * len(self.metrics))
        if architecture in earlier.results or architecture in earlier.held.values():
            self._withdraw(mine)
            return None
        return mine
