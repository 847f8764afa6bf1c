"""Workers that cannot evaluate, and storages that go away for a while: the others' search goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import optuna
import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.jobs import Failure
from nas_core.space import Architecture
from optuna_ext import storage as storages
from optuna_ext.heartbeat import BEAT, StaleTrials
from optuna_ext.history import CLAIM
from optuna_ext.worker import SharedEvaluations
from tests.optuna_ext.study import EVERY, NAME, SPACE, quality, storage_at, study_in


def score(architecture: Architecture) -> dict[str, float]:
    return {"loss": quality(architecture)}


def broken(architecture: Architecture) -> dict[str, float]:
    raise RuntimeError("CUDA error")


def shared(storage: str, evaluate=score) -> SharedEvaluations:
    return SharedEvaluations(storage, NAME, SPACE, evaluate, ["loss"], {}, stale_s=10.0, poll_s=0.02)


@pytest.mark.parametrize("count", [len(EVERY), 3], ids=["more than it tries", "fewer"])
def test_a_broken_worker_ends_and_the_others_go_on(tmp_path: Path, count: int) -> None:
    storage = storage_at(tmp_path, "journal")
    for _ in range(2):  # also when it is started again
        with pytest.raises(
            NasExtError, match=r"10 evaluations in a row failed in this worker, .* CUDA error; fix the cause"
        ):
            list(shared(storage, broken)(EVERY[:count]))
    assert not [trial for trial in study_in(storage).trials if trial.state.name == "RUNNING"]
    healthy = shared(storage)
    assert list(healthy(EVERY[:count])) == [score(one) for one in EVERY[:count]]
    assert healthy.evaluated == count


def test_a_failure_is_told_when_its_worker_has_shown_that_it_works(tmp_path: Path) -> None:
    storage, evaluated, states = storage_at(tmp_path, "journal"), [], []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        states.append(
            [trial.state.name for trial in study_in(storage).trials if "nas_ext:failing" in trial.system_attrs]
        )
        evaluated.append(architecture)
        if architecture in EVERY[:2] or len(evaluated) == 1:
            raise RuntimeError("out of memory")
        return score(architecture)

    worker = shared(storage, evaluate)
    worker.take_unless_taken(EVERY[0])
    worker.take_unless_taken(EVERY[1])
    other = shared(storage)
    other.take_unless_taken(EVERY[0])  # which is taken
    assert other.evaluated == 0
    reason = Failure("RuntimeError: out of memory")
    assert list(worker(EVERY[:3])) == [reason, reason, score(EVERY[2])]
    assert states == [[], ["RUNNING"], ["RUNNING"] * 2]
    assert list(other(EVERY[:3])) == [reason, reason, score(EVERY[2])] and other.evaluated == 0


def test_the_last_ones_failure_is_told_after_another_look_at_a_good_one(tmp_path: Path) -> None:
    storage, evaluated = storage_at(tmp_path, "journal"), []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        evaluated.append(architecture)
        return {} if architecture == EVERY[1] else score(architecture)

    worker = shared(storage, evaluate)
    worker.take_unless_taken(EVERY[0])
    assert list(worker(EVERY[:2])) == [score(EVERY[0]), Failure("metric loss is missing or not a number")]
    assert evaluated == [EVERY[0], EVERY[1], EVERY[0]] and worker.evaluated == 2


def test_what_fails_once_is_no_failure_where_nothing_else_succeeded(tmp_path: Path) -> None:
    evaluated: list[Architecture] = []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        evaluated.append(architecture)
        return {} if len(evaluated) < 5 else score(architecture)

    results = list(shared(storage_at(tmp_path, "journal"), evaluate)(EVERY[:2]))
    assert sorted(map(str, results)) == sorted(
        map(str, [score(evaluated[4]), Failure("metric loss is missing or not a number")])
    )


class Away:
    """A storage some of whose calls fail as a database that is started again does."""

    def __init__(self, storage: Any, calls: int) -> None:
        self.storage, self.calls, self.failed = storage, calls, 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.storage, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            if self.failed < self.calls:
                self.failed += 1
                raise OSError("connection refused")
            return method(*args, **kwargs)

        return called


@pytest.mark.parametrize("first", ["take", "write"])
def test_a_storage_that_comes_back_loses_nothing(tmp_path: Path, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "PAUSE_S", 0.001)
    worker = shared(storage_at(tmp_path, "journal"))
    away = Away(worker.study._storage, 3)  # private: a study has no other place for it

    def evaluate(architecture: Architecture) -> dict[str, float]:
        worker.study._storage = away  # private: a study has no other place for it
        return score(architecture)

    worker.evaluate = evaluate
    if first == "take":
        worker.study._storage = away  # private: a study has no other place for it
    assert list(worker(EVERY[:2])) == [score(one) for one in EVERY[:2]]
    assert worker.evaluated == 2 and away.failed == 3


def test_a_storage_that_stays_away_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "PAUSE_S", 0.001)
    monkeypatch.setattr(storages, "PATIENCE_S", 0.01)
    worker = shared(storage_at(tmp_path, "journal"))

    def evaluate(architecture: Architecture) -> dict[str, float]:
        worker.study._storage = Away(worker.study._storage, 10**9)  # private: a study has no other place for it
        return score(architecture)

    worker.evaluate = evaluate
    with pytest.raises(
        ConfigError, match=r"was not reachable for 0\.01 s: OSError: connection refused; make it available"
    ):
        list(worker(EVERY[:2]))


def test_a_claim_without_a_beat_is_stale_where_others_beat() -> None:
    study, stale = optuna.create_study(), StaleTrials()
    claimed, beating = study.ask(), study.ask()
    study.ask()  # has no architecture yet
    claimed.storage.set_trial_system_attr(claimed._trial_id, CLAIM, [0])  # private: as storages name it
    for _ in range(2):
        assert stale.fail_stale(study, study.trials) == []
        time.sleep(0.02)
    beating.storage.set_trial_system_attr(beating._trial_id, BEAT, [1, 0.01])  # private: as storages name it
    assert stale.fail_stale(study, study.trials) == []
    time.sleep(0.02)
    assert stale.fail_stale(study, study.trials) == [claimed.number, beating.number]
