"""One search by several workers that run the same command and share evaluations in an Optuna storage.

Workers may be killed or join at any time.
"""
# Strategies depend on results only, so all workers ask for the same architectures. Creating a trial claims its
# architecture; of two such trials the lower number wins.
#
# A worker publishes its failures only after its next success, since the worker may have caused them. If nothing else is
# left, it repeats a successful evaluation. After too many consecutive failures it ends.

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nas_core.errors import NasExtError
from nas_core.jobs import Failure
from nas_core.optional import require
from nas_core.search.engine import MAX_FAILURES, attempt
from nas_core.search.journal import plain_metrics
from nas_core.space import Architecture, SearchSpace
from nas_core.space.labels import parameters_of
from optuna_ext.genes import distributions_of
from optuna_ext.heartbeat import BEAT, Heartbeat, StaleTrials, give_up
from optuna_ext.history import CLAIM, ERROR, FAILING, WITHDRAWN, History, Trials
from optuna_ext.storage import is_of_storage, open_study, patiently

_log = logging.getLogger(__name__)
TOKEN = "nas_ext:token"
"""System attribute with a random token, by which a worker finds the trial that it created."""
CHOICES = 16
"""Number of free architectures among which a worker draws at random, so that workers rarely choose the same one."""
LOST = "each worker that evaluated it stopped without a result"

STALE_S = 120.0
"""Seconds without a heartbeat after which a worker counts as stopped."""

Evaluate = Callable[[Architecture], Mapping[str, Any]]


class _Failed(NamedTuple):
    """A trial with a failed evaluation, kept running until the cause (worker or architecture) is known."""

    trial: Any
    architecture: Architecture
    reason: str
    heartbeat: Heartbeat


class SharedEvaluations:
    """Evaluations shared by the workers of one Optuna study.

    Pass it as ``evaluate_many`` to :func:`nas_core.search.search`.

    Args:
        storage: URL of an Optuna storage, or path of a journal file.
        study: name of the study, created if missing.
        metrics: names of the objective values, all minimised.
        settings: settings of the search as plain data, the same for all workers.
        stale_s: seconds without a heartbeat after which a worker counts as stopped.
        poll_s: seconds between reads of the storage while other workers evaluate.

    Raises:
        ConfigError: the storage cannot be opened, or the study belongs to another search.
    """

    together = 10_000
    """Largest number of architectures per call."""

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
        self.space, self.evaluate, self.metrics = space, evaluate, tuple(metrics)
        self.study = patiently(open_study, storage, study, metrics, settings)
        self.stale_s, self.poll_s = stale_s, poll_s
        self.evaluated = 0
        """Number of evaluations by this worker."""
        self._optuna = require("optuna", "a shared search", "optuna")
        self._distributions = distributions_of(space)
        self._history, self._stale = History(space), StaleTrials()
        self._rng = np.random.default_rng()
        self._failed: list[_Failed] = []
        self._in_a_row = 0

    def __call__(self, architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        """Yield the metrics or failure of each architecture in order; evaluate architectures without a result.

        Raises:
            NasExtError: 10 consecutive evaluations failed, or the storage is unreachable.
        """
        try:
            yield from self._outcomes(architectures)
        finally:
            self._withdraw_failed()

    def _outcomes(self, architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        done = 0
        while done < len(architectures):
            state = patiently(self._read)
            while done < len(architectures) and architectures[done] in state.results:
                metrics = state.results[architectures[done]]
                yield Failure(state.errors.get(architectures[done], LOST)) if metrics is None else metrics
                done += 1
            held = {*state.results, *state.held.values()}
            free = [architecture for architecture in architectures[done:] if architecture not in held]
            if free:
                self.take_unless_taken(free[int(self._rng.integers(min(len(free), CHOICES)))])
            elif done < len(architectures) and not (self._failed and self._evaluate_again(state)):
                time.sleep(self.poll_s)

    def _read(self) -> Trials:
        trials = self.study.get_trials(deepcopy=False)
        if failed := self._stale.fail_stale(self.study, trials):
            _log.warning(
                "trial %s has no heartbeat: another worker may evaluate its architecture", ", ".join(map(str, failed))
            )
            trials = self.study.get_trials(deepcopy=False)
        trials = [trial for trial in trials if trial.state.name != "WAITING"]
        return self._history.read(trials, self.metrics, [1] * len(self.metrics))

    def take_unless_taken(self, architecture: Architecture) -> None:
        """Evaluate an architecture and store its result, unless another worker has claimed it."""
        trial = self._take(architecture)
        if trial is None:
            return
        heartbeat = Heartbeat(self.study._storage, trial._trial_id, self.stale_s)
        try:
            heartbeat.start()
            outcome = self._outcome(architecture)
            self.evaluated += 1
            if isinstance(outcome, Failure):
                patiently(self.study._storage.set_trial_system_attr, trial._trial_id, FAILING, outcome.reason)
                self._failed.append(_Failed(trial, architecture, outcome.reason, heartbeat))
                self._count_failure(outcome.reason)
                return
            self._write(trial, outcome)
            heartbeat.stop()
            self._succeeded()
        except self._optuna.exceptions.UpdateFinishedTrialError:
            heartbeat.stop()
            _log.warning(
                "trial %d was failed by another worker, since its heartbeat was late; its result is dropped",
                trial.number,
            )
        except BaseException:
            heartbeat.stop()
            self._withdraw(trial)
            raise

    def _write(self, trial: Any, outcome: Mapping[str, float] | Failure) -> None:
        attributes = {ERROR: outcome.reason} if isinstance(outcome, Failure) else outcome
        for name, value in attributes.items():
            patiently(self.study._storage.set_trial_user_attr, trial._trial_id, name, value)
        if isinstance(outcome, Failure):
            patiently(give_up, self.study, trial.number)
        else:
            values = [outcome[name] for name in self.metrics]
            patiently(partial(self.study.tell, trial.number, values, skip_if_finished=True))

    def _count_failure(self, reason: str) -> None:
        self._in_a_row += 1
        if self._in_a_row >= MAX_FAILURES:
            self._withdraw_failed()
            raise NasExtError(
                f"{MAX_FAILURES} evaluations in a row failed in this worker, the last one with {reason}; fix the cause"
                " and start the worker again: all results are kept, and other workers may evaluate these architectures"
            )

    def _succeeded(self) -> None:
        self._in_a_row = 0
        while self._failed:
            failed = self._failed.pop()
            try:
                with suppress(self._optuna.exceptions.UpdateFinishedTrialError):  # another worker has it by now
                    self._write(failed.trial, Failure(failed.reason))
            finally:
                failed.heartbeat.stop()

    def _evaluate_again(self, state: Trials) -> bool:
        """Repeat a successful evaluation, or a failed one if there is none, to test this worker.

        Return False if it has to wait for a result of another worker.
        """
        good = [architecture for architecture, metrics in state.results.items() if metrics is not None]
        if not good and state.held.keys() - state.failing:
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
            failed.heartbeat.stop()
        self._succeeded()
        return True

    def _withdraw_failed(self) -> None:
        self._in_a_row = 0
        while self._failed:
            failed = self._failed.pop()
            failed.heartbeat.stop()
            self._withdraw(failed.trial)

    def _withdraw(self, trial: Any) -> None:
        """Fail a trial without a result, so that other workers may evaluate its architecture."""
        try:
            self.study._storage.set_trial_system_attr(trial._trial_id, WITHDRAWN, True)
            give_up(self.study, trial.number)
        except self._optuna.exceptions.UpdateFinishedTrialError:
            return
        except Exception as error:
            if not is_of_storage(error):
                raise
            _log.warning(
                "trial %d cannot be ended: the storage is not reachable; other workers may evaluate its architecture"
                " after %g s without a heartbeat",
                trial.number,
                self.stale_s,
            )

    def _outcome(self, architecture: Architecture) -> dict[str, float] | Failure:
        metrics = attempt(lambda chosen: plain_metrics(self.evaluate(chosen)), architecture)
        if isinstance(metrics, Failure):
            return metrics
        for name in self.metrics:
            if metrics.get(name) is None:
                return Failure(f"metric {name} is missing or not a number")
        return {name: value for name, value in metrics.items() if value is not None}

    def _take(self, architecture: Architecture) -> Any:
        token, parameters = uuid.uuid4().hex, parameters_of(self.space, architecture)
        row = self.space.row(architecture).tolist()
        trial = self._optuna.create_trial(
            state=self._optuna.trial.TrialState.RUNNING,
            params=parameters,
            distributions={name: self._distributions[name] for name in parameters},
            user_attrs={"architecture": architecture.key},
            system_attrs={TOKEN: token, CLAIM: row, BEAT: [0, self.stale_s]},
        )
        patiently(self.study.add_trial, trial)
        trials = patiently(partial(self.study.get_trials, deepcopy=False))
        mine, *duplicates = [trial for trial in trials if trial.system_attrs.get(TOKEN) == token]
        for trial in duplicates:  # created before an outage, without an answer
            self._withdraw(trial)
        before = [trial for trial in trials if trial.number < mine.number and trial.state.name != "WAITING"]
        earlier = self._history.read(before, self.metrics, [1] * len(self.metrics))
        if architecture in earlier.results or architecture in earlier.held.values():
            self._withdraw(mine)
            return None
        return mine
