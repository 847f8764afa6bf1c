"""The benchmark of real BLEU: its splits, its methods on made-up networks, and means of what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.parts import published
from benchmarks.parts.bleu.methods import METHODS, SLOW, UNTRAINED_METHODS, plain_ridge
from benchmarks.parts.bleu.networks import SUPERNETS, TABLE, TranslationTask, tasks, translation_task
from benchmarks.supernet.real_bleu import DRAWN, PUBLISHED, Task, plan_tasks, run, split, summary
from nas_core.models import kind_of
from nas_core.space import get_space

needs_table = pytest.mark.skipif(published.absent(TABLE) is not None, reason=str(published.absent(TABLE)))


@pytest.fixture(scope="module")
def made_up() -> TranslationTask:
    space = get_space("hat_wmt14_en_de")
    rng = np.random.default_rng(0)
    networks = space.architectures(space.sample_rows(rng, 30))
    params = np.array([kind_of(space).params_m(network) for network in networks])
    bleu = 20 + 2 * np.log(params)
    inherited = np.stack([bleu / 2 + 0.1 * rng.standard_normal(30) for _ in SUPERNETS], axis=1)
    splits = {seed: np.sort(rng.permutation(30)[:10]) for seed in ("1", "2", "3")}
    return TranslationTask(space, networks, bleu, bleu, inherited, inherited, params, splits)


def test_who_judges_is_never_trained(made_up: TranslationTask) -> None:
    for protocol, trained, judges in ((PUBLISHED, 10, 20), (PUBLISHED, 5, 20), (DRAWN, 15, 15), (DRAWN, 5, 25)):
        chosen = [split(made_up, Task("wmt14ende", "hat", trained, protocol, draw)) for draw in range(4)]
        for training, judging in chosen:
            assert len(training) == trained and len(judging) == judges and not set(training) & set(judging)
    (first, judging), (repeated, same) = (split(made_up, Task("", "hat", 5, PUBLISHED, draw)) for draw in (0, 3))
    assert np.array_equal(judging, same) and not np.array_equal(first, repeated)


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(SLOW)))
def test_methods_estimate(method: str, made_up: TranslationTask) -> None:
    trained, judges = split(made_up, Task("", method, 10, PUBLISHED, 0))
    estimates, std = METHODS[method](made_up, trained)
    off = np.abs(estimates[judges] - made_up.bleu[judges]).mean()
    assert estimates.shape == (30,) and off < 0.7 * np.abs(made_up.bleu[judges] - made_up.bleu[trained].mean()).mean()
    assert (std is not None) == method.startswith("calibration")
    if method in UNTRAINED_METHODS:
        assert METHODS[method](made_up, trained[:0])[0].shape == (30,)


def test_the_plain_ridge_is_the_one_of_the_formula(made_up: TranslationTask) -> None:
    columns = np.random.default_rng(1).standard_normal((30, 3))
    result = plain_ridge(columns, columns @ [1.0, 2.0, 3.0], np.arange(25))
    assert np.corrcoef(result[25:], (columns @ [1.0, 2.0, 3.0])[25:])[0, 1] > 0.99


def test_means_are_of_draws_then_of_tasks() -> None:
    records: list[dict[str, Any]] = [
        {**Task(task, "calibration", 10, DRAWN, draw).key, "tau": tau, "error": 0.1, "judged": 20}
        for task, taus in (("a", (0.6, 0.8)), ("b", (0.9, 0.9)))
        for draw, tau in enumerate(taus)
    ]
    mean, first, second = summary(records)
    assert (mean["task"], mean["tau"], first["tau"], second["tau"]) == ("mean", 0.8, 0.7, 0.9)
    assert mean["draws"] == 2 and mean["error"] == 0.1


@needs_table
def test_the_published_table() -> None:
    assert tasks() == ["wmt14ende", "wmt14enfr"]
    for name in tasks():
        task = translation_task(name)
        assert len(task.architectures) == 30 and task.inherited.shape == (30, 4)
        assert sorted(map(len, task.splits.values())) == [10, 10, 10]
        counted = [kind_of(task.space).params_m(network) for network in task.architectures]
        assert counted == pytest.approx(task.params_m)
    assert run(Task("wmt14ende", "calibration", 10, PUBLISHED, 0))["tau"] > 0.6
    assert len({tuple(task.key.values()) for task in plan_tasks(tasks(), 4)}) == len(plan_tasks(tasks(), 4))
