"""Signs of life of running trials, in any storage of Optuna, and trials whose worker has given none.

Optuna's own heartbeat is for databases alone; a journal file has none. Here a worker counts up an attribute of its
trial. Whoever sees the count unchanged for as long as the trial itself says fails it. No clocks are compared.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from optuna_ext.history import CLAIM
from optuna_ext.storage import patiently

BEAT = "nas_ext:beat"
"""System attribute of a running trial: how often it was counted up, and after how many seconds without it is lost."""
STALE_S = 600.0
"""Seconds without a sign of life after which a worker is lost: a machine may sleep, or swap, for a while."""


class Heart:
    """Counts up while its block runs, or from its start to its stop.

    Args:
        storage: of Optuna.
        trial_id: the trial's id there.
        stale_s: seconds after which a trial without another beat is lost; four beats fit in.
    """

    def __init__(self, storage: Any, trial_id: int, stale_s: float = STALE_S) -> None:
        self._storage, self._trial_id, self._stale_s = storage, trial_id, stale_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Heart:
        """Beat once, and from now on.

        Raises:
            ConfigError: the storage is not reached.
        """
        patiently(self._beat, 1)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Beat no more; a heart that was not started has nothing to stop."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Heart:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        count = 2
        while not self._ended.wait(self._stale_s / 4):
            with contextlib.suppress(Exception):  # another beat follows; a trial that was given up needs none
                self._beat(count)
            count += 1

    def _beat(self, count: int) -> None:
        self._storage.set_trial_system_attr(self._trial_id, BEAT, [count, self._stale_s])


class Watch:
    """Fails trials that have stopped to beat; one for each worker, which has to look now and then.

    A trial that has an architecture and has never beaten is failed as well, after the longest time that any trial of
    the study names, where others of the study do beat: its worker was lost before the first one. In a study without
    beats nothing is failed; there, only Optuna's own heartbeat tells a lost worker from a slow one.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int | None, float]] = {}

    def fail_stale(self, study: Any, trials: Sequence[Any]) -> list[int]:
        """The numbers of the trials that were failed now."""
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
    """Fail a running trial; whether it was still running."""
    from optuna.exceptions import UpdateFinishedTrialError
    from optuna.trial import TrialState

    try:
        told = study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
    except (UpdateFinishedTrialError, ValueError):  # its worker, or another one, was faster
        return False
    return bool(told.state == TrialState.FAIL)
