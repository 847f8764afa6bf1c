"""Samplers on studies: the strategy's own search, limits, repeats, warm starts, lost workers."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np
import optuna
import pytest

from nas_core.errors import ConfigError
from nas_core.search import HATEvolution
from nas_core.search.registry import config_of
from nas_core.space.labels import parameters_of
from optuna_ext import (
    HATEvolutionSampler,
    MultiObjectiveSampler,
    RankNASSampler,
    SearchSampler,
    architecture_of,
    as_objective,
    suggest_architecture,
)
from optuna_ext.genes import distributions_of
from tests.contracts.strategy import drive
from tests.contracts.strategy import quality as large_quality
from tests.optuna_ext.study import SMALL, SPACE, constraint, limit, quality, size, storage_at, study_in, supernet


def objective(trial: optuna.Trial) -> float:
    return quality(suggest_architecture(trial, SPACE))


def architectures(study: optuna.Study) -> list:
    return [architecture_of(trial, SPACE) for trial in study.trials if trial.params]


def test_a_study_is_the_strategys_own_search() -> None:
    from tests.contracts.strategy import SPACE as LARGE

    study = optuna.create_study(sampler=HATEvolutionSampler(LARGE, population=10, seed=3))
    study.optimize(lambda trial: large_quality(suggest_architecture(trial, LARGE)), n_trials=30)
    strategy = HATEvolution(LARGE, (), config_of("evolution", {"population": 10}), seed=3)
    assert [architecture_of(trial, LARGE) for trial in study.trials] == drive(strategy, 30)


def test_a_prior_guides_the_first_trials() -> None:
    def prior(architectures: list) -> list[float]:
        return [-quality(architecture) for architecture in architectures]

    study = optuna.create_study(sampler=RankNASSampler(SPACE, samples=4, per_round=1, prior=prior))
    study.optimize(objective, n_trials=2)
    best = min(map(quality, SPACE.architectures(np.unique(SPACE.sample_rows(np.random.default_rng(0), 9999), axis=0))))
    assert study.best_value == best
    with pytest.raises(ConfigError, match="strategy evolution does not use a prior"):
        SearchSampler(SPACE, strategy="evolution", prior=prior)


@pytest.mark.parametrize("make", [HATEvolutionSampler, RankNASSampler])
def test_no_repeats_and_nothing_outside_the_limits_until_nothing_is_left(make) -> None:
    options = (
        SMALL
        if make is HATEvolutionSampler
        else {"samples": 8, "rounds": 1, "per_round": 4, "candidates": 50, "generations": 1}
    )
    study = optuna.create_study(sampler=make(SPACE, limit(30.0), **options))
    study.optimize(objective, n_trials=200)
    suggested = architectures(study)
    all_architectures = {
        one for one in SPACE.architectures(SPACE.sample_rows(np.random.default_rng(0), 2000)) if size(one) <= 30
    }
    assert set(suggested) == all_architectures and len(suggested) == len(all_architectures)
    assert study.trials[-1].state == optuna.trial.TrialState.PRUNED and len(study.trials) == len(all_architectures) + 1
    assert study.best_value == min(quality(one) for one in all_architectures)


def test_threads_do_not_repeat_each_other() -> None:
    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, constraint(), **SMALL))
    study.optimize(objective, n_trials=30, n_jobs=4)
    assert len(set(architectures(study))) == 30


def test_what_is_maximised_is_found() -> None:
    study = optuna.create_study(direction="maximize", sampler=HATEvolutionSampler(SPACE, **SMALL))
    study.optimize(lambda trial: -objective(trial), n_trials=40)
    same = optuna.create_study(sampler=HATEvolutionSampler(SPACE, **SMALL))
    same.optimize(objective, n_trials=40)
    assert architectures(study) == architectures(same)


@pytest.mark.parametrize(
    "sampler",
    [
        MultiObjectiveSampler(SPACE, metrics=["loss", "size"], population=6, iterations=4),
        SearchSampler(SPACE, strategy="hypervolume", metrics=["loss", "size"], evaluations=30, candidates=50),
    ],
    ids=["multi-objective", "hypervolume"],
)
def test_a_front_of_two_values(sampler: SearchSampler) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.optimize(lambda trial: (objective(trial), -size(architecture_of(trial, SPACE))), n_trials=40)
    assert len(set(architectures(study))) == 40 and len(study.best_trials) > 3


def test_other_parameters_are_drawn_independently() -> None:
    def both(trial: optuna.Trial) -> float:
        return trial.suggest_float("rate", 0.0, 1.0) + objective(trial)

    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, **SMALL))
    study.optimize(both, n_trials=12)
    assert len({trial.params["rate"] for trial in study.trials}) == 12
    assert len(set(architectures(study))) == 12


def test_an_objective_without_genes_is_warned_of() -> None:
    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE))
    with pytest.warns(UserWarning, match="suggest_architecture"):
        study.optimize(lambda trial: trial.suggest_float("lr", 0, 1), n_trials=1)


def test_trials_from_before_are_learned_from_and_not_repeated() -> None:
    study = optuna.create_study()
    rows = np.unique(SPACE.sample_rows(np.random.default_rng(0), 40), axis=0)
    before = [one for one in SPACE.architectures(rows) if one != SPACE.largest()]
    distributions = distributions_of(SPACE)
    for architecture in before:
        parameters = parameters_of(SPACE, architecture)
        chosen = {name: distributions[name] for name in parameters}
        study.add_trial(optuna.create_trial(params=parameters, distributions=chosen, value=quality(architecture)))
    study.sampler = RankNASSampler(SPACE, samples=3, rounds=3, per_round=3)
    study.enqueue_trial(parameters_of(SPACE, SPACE.largest()))
    study.optimize(objective, n_trials=10)
    suggested = architectures(study)
    assert len(set(suggested)) == len(suggested) and SPACE.largest() in suggested


def test_a_worker_waits_a_while_for_those_before_it_whatever_their_clocks_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optuna_ext.sampler.PATIENCE_S", 0.05)
    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, **SMALL))
    for _ in range(2):
        study.ask()  # has no architecture, and never takes one
    started = time.monotonic()
    first = suggest_architecture(study.ask(), SPACE)
    assert time.monotonic() - started >= 0.05
    monkeypatch.setattr("optuna_ext.sampler.POLL_S", -1.0)  # it waits no second time, which would raise
    assert suggest_architecture(study.ask(), SPACE) != first


def test_a_failed_trial_is_tried_again_and_one_that_says_why_is_not() -> None:
    count: Counter = Counter()

    def failing(trial: optuna.Trial) -> float:
        architecture = suggest_architecture(trial, SPACE)
        count[architecture] += 1
        if len(count) == 1:
            raise RuntimeError("no luck")
        if len(count) == 3:
            trial.set_user_attr("error", "out of memory")
            return math.nan
        return quality(architecture)

    study = optuna.create_study(sampler=HATEvolutionSampler(SPACE, **SMALL))
    study.optimize(failing, n_trials=20, catch=(RuntimeError,))
    assert sorted(count.values()) == [1] * (len(count) - 1) + [3]  # twice again, then it counts as failed


def test_a_sampler_goes_from_study_to_study() -> None:
    sampler = HATEvolutionSampler(SPACE, **SMALL)
    results = []
    for _ in range(2):
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=12)
        results.append(architectures(study))
    assert results[0] == results[1]


def _worker(storage: str, dies: bool) -> None:
    sampler = HATEvolutionSampler(SPACE, limit(), **SMALL)
    toy = supernet()
    if dies:
        toy.score = lambda architecture: os.kill(os.getpid(), signal.SIGKILL)
    study_in(storage, sampler).optimize(as_objective(toy, costs={}), n_trials=6)


@pytest.mark.parametrize("kind", ["journal", "sqlite", "postgresql"])
def test_workers_on_one_storage_one_of_them_killed(tmp_path: Path, kind: str) -> None:
    storage = storage_at(tmp_path, kind)
    study_in(storage)
    fork = multiprocessing.get_context("fork")
    killed = fork.Process(target=_worker, args=(storage, True))
    killed.start()
    killed.join()
    assert killed.exitcode == -9
    workers = [fork.Process(target=_worker, args=(storage, False)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    study = study_in(storage, HATEvolutionSampler(SPACE, limit(), **SMALL))
    if kind == "journal":  # has no heartbeats
        study.tell(0, state=optuna.trial.TrialState.FAIL)
    time.sleep(0 if kind == "journal" else 6.5)  # longer than the grace period of heartbeats
    study.optimize(as_objective(supernet(), costs={}), n_trials=6)
    done = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    architectures = [architecture_of(trial, SPACE) for trial in done]
    assert len(set(architectures)) == len(architectures) == 18
    lost = [trial for trial in study.trials if trial.state.name != "COMPLETE"]
    assert len(lost) == 1 and architecture_of(lost[0], SPACE) in architectures  # nothing is lost
