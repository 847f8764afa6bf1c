"""Evaluations that workers share: nothing lost, nothing twice, whoever is killed."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path

import optuna
import pytest

from nas_core.errors import NasExtError
from nas_core.jobs import Failure
from nas_core.space import Architecture
from optuna_ext.heartbeat import BEAT
from optuna_ext.worker import SharedEvaluations
from tests.optuna_ext.study import EVERY, NAME, SPACE, quality, size, storage_at, study_in, work


def score(architecture: Architecture) -> dict[str, float]:
    return {"loss": quality(architecture), "size": size(architecture), "further": 3.0}


def shared(storage: str, evaluate=score, settings=None, metrics=("loss", "size")) -> SharedEvaluations:
    return SharedEvaluations(
        storage, NAME, SPACE, evaluate, metrics, settings or {"data": "toy"}, stale_s=1.0, poll_s=0.02
    )


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_workers_that_are_killed_lose_nothing(tmp_path: Path, kind: str) -> None:
    storage, log = storage_at(tmp_path, kind), tmp_path / "log"
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=work, args=(storage, dies_at, str(log))) for dies_at in (2, 1, 0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    codes = [worker.exitcode for worker in workers]
    assert codes[2] == 0 and set(codes[:2]) <= {-9, 0}
    trials = study_in(storage).trials
    keys = Counter(trial.user_attrs["architecture"] for trial in trials if trial.state.name == "COMPLETE")
    assert keys == Counter(one.key for one in EVERY)  # each once
    lost = [trial for trial in trials if trial.state.name == "FAIL" and "nas_ext:withdrawn" not in trial.system_attrs]
    assert len(lost) >= codes.count(-9)
    assert all(trial.user_attrs["further"] == 3.0 for trial in trials if trial.state.name == "COMPLETE")
    assert len(list(shared(storage)(EVERY))) == len(EVERY)  # who comes later evaluates nothing
    assert log.read_text().count("\n") >= len(EVERY)


def test_what_fails_fails_for_all_and_what_is_lost_thrice_too(tmp_path: Path) -> None:
    storage = storage_at(tmp_path, "journal")

    def failing(architecture: Architecture) -> dict[str, float]:
        if architecture == EVERY[0]:
            raise RuntimeError("out of memory")
        return score(architecture) if architecture != EVERY[1] else {"loss": 1.0}

    first = list(shared(storage, failing)(EVERY[:3]))
    assert first[:2] == [Failure("RuntimeError: out of memory"), Failure("metric size is missing or not a number")]
    assert first[2] == score(EVERY[2])
    other = shared(storage)
    assert list(other(EVERY[:3])) == first and other.evaluated == 0
    study = study_in(storage)
    for _ in range(3):
        _lost(study, EVERY[3])
    assert list(shared(storage)(EVERY[3:4])) == [Failure("each worker that evaluated it stopped without a result")]


def _lost(study: optuna.Study, architecture: Architecture) -> None:
    from nas_core.space.labels import parameters_of
    from optuna_ext.genes import distributions_of

    parameters = parameters_of(SPACE, architecture)
    chosen = {name: one for name, one in distributions_of(SPACE).items() if name in parameters}
    failed = optuna.trial.TrialState.FAIL
    study.add_trial(optuna.create_trial(state=failed, params=parameters, distributions=chosen))


def test_an_interrupted_evaluation_is_free_at_once(tmp_path: Path) -> None:
    storage = storage_at(tmp_path, "journal")
    for error in (KeyboardInterrupt(), NasExtError("no split 'valid'")):

        def interrupted(architecture: Architecture, error: BaseException = error) -> dict[str, float]:
            raise error

        with pytest.raises(type(error)):
            list(shared(storage, interrupted)(EVERY[:1]))
        assert all(trial.state.is_finished() for trial in study_in(storage).trials)
    assert list(shared(storage)(EVERY[:1])) == [score(EVERY[0])]


def test_of_two_that_take_one_the_first_has_it(tmp_path: Path) -> None:
    storage, evaluated = storage_at(tmp_path, "journal"), []
    first, second = shared(storage), shared(storage)

    def evaluate(architecture: Architecture) -> dict[str, float]:
        evaluated.append(architecture)
        second.take_unless_taken(architecture)  # meanwhile
        return score(architecture)

    first.evaluate = second.evaluate = evaluate
    assert list(first(EVERY[:2])) == [score(one) for one in EVERY[:2]]
    assert len(evaluated) == 2 and (first.evaluated, second.evaluated) == (2, 0)
    withdrawn = [trial for trial in study_in(storage).trials if trial.state.name == "FAIL"]
    assert len(withdrawn) == 2 and all(trial.system_attrs[BEAT][0] == 0 for trial in withdrawn)
