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

__all__ = ["BEAT", "STALE_S", "Heart", "Watch"]

BEAT = "nas_ext:beat"
"""System attribute of a running trial: how often it was counted up, and after how many seconds without it is lost."""
STALE_S = 120.0


class Heart:
    """Counts up while its block runs.

    Args:
        storage: of Optuna.
        trial_id: the trial's id there.
        stale_s: seconds after which a trial without another beat is lost; four beats fit in.
    """

    def __init__(self, storage: Any, trial_id: int, stale_s: float = STALE_S) -> None:
        self._storage, self._trial_id, self._stale_s = storage, trial_id, stale_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Heart:
        self._beat(1)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        count = 2
        while not self._ended.wait(self._stale_s / 4):
            with contextlib.suppress(Exception):  # another beat follows; a trial that was given up needs none
                self._beat(count)
            count += 1

    def _beat(self, count: int) -> None:
        self._storage.set_trial_system_attr(self._trial_id, BEAT, [count, self._stale_s])


class Watch:
    """Fails trials that have stopped to beat; one for each worker, which has to look now and then."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, float]] = {}

    def fail_stale(self, study: Any, trials: Sequence[Any]) -> list[int]:
        """The numbers of the trials that were failed now."""
        failed = []
        now = time.monotonic()
        for trial in trials:
            beat = trial.system_attrs.get(BEAT)
            if trial.state.name != "RUNNING" or beat is None:
                continue
            count, since = self._seen.get(trial.number, (None, now))
            if count != beat[0]:
                since = now
            self._seen[trial.number] = beat[0], since
            if now - since > beat[1] and give_up(study, trial.number):
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
