"""Heartbeats of running trials, in any Optuna storage.

Optuna's own heartbeat needs a database. Here each worker increments a counter in its trial, and other workers fail a
trial whose counter does not change for ``stale_s`` seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

from optuna_ext.history import CLAIM

BEAT = "nas_ext:beat"
"""System attribute of a running trial: number of heartbeats, and seconds without one after which it is stale."""
STALE_S = 600.0
"""Default seconds without a heartbeat after which a trial is stale."""


class Heartbeat:
    """Heartbeat of a trial inside a ``with`` block: one at the start, then one every ``stale_s / 4`` seconds."""

    def __init__(self, storage: Any, trial_id: int, stale_s: float) -> None:
        self._storage, self._trial_id, self._stale_s = storage, trial_id, stale_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._beat(1)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        count = 2
        while not self._ended.wait(self._stale_s / 4):
            with contextlib.suppress(Exception):  # the next beat may succeed; a trial that was given up needs none
                self._beat(count)
            count += 1

    def _beat(self, count: int) -> None:
        self._storage.set_trial_system_attr(self._trial_id, BEAT, [count, self._stale_s])


class StaleTrials:
    """Detector of running trials without a new heartbeat for ``stale_s`` seconds."""

    # A trial with an architecture but without a heartbeat is stale after the largest `stale_s` of all trials. If no
    # trial has a heartbeat, none is stale.
    def __init__(self) -> None:
        self._seen: dict[int, tuple[int | None, float]] = {}

    def fail_stale(self, study: Any, trials: Sequence[Any]) -> list[int]:
        """Fail stale trials and return their numbers."""
        failed = []
        now = time.monotonic()
        longest = max((trial.system_attrs[BEAT][1] for trial in trials if BEAT in trial.system_attrs), default=None)
        for trial in trials:
            if trial.state.name != "RUNNING" or longest is None:
                continue
            if BEAT not in trial.system_attrs and CLAIM not in trial.system_attrs:
                continue
            count, stale_s = trial.system_attrs.get(BEAT, (None, longest))
            before, since = self._seen.get(trial.number, (count, now))
            if count != before:
                since = now
            self._seen[trial.number] = count, since
            if now - since > stale_s and give_up(study, trial.number):
                failed.append(trial.number)
        return failed


def give_up(study: Any, number: int) -> bool:
    """Fail a trial; return False if it was already finished."""
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.trial import TrialState

    try:
        trial = study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
    except (UpdateFinishedTrialError, ValueError):  # its worker, or another one, was faster
        return False
    return bool(trial.state == TrialState.FAIL)
