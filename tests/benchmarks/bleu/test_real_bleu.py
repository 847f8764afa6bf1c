"""Benchmark real_bleu: splits, methods on synthetic networks, and means."""

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
def synthetic() -> TranslationTask:
    space = get_space("hat_wmt14_en_de")
    rng = np.random.default_rng(0)
    networks = space.architectures(space.sample_rows(rng, 30))
    params = np.array([kind_of(space).params_m(network) for network in networks])
    bleu = 20 + 2 * np.log(params)
    inherited = np.stack([bleu / 2 + 0.1 * rng.standard_normal(30) for _ in SUPERNETS], axis=1)
    splits = {seed: np.sort(rng.permutation(30)[:10]) for seed in ("1", "2", "3")}
    return TranslationTask(space, networks, bleu, bleu, inherited, inherited, params, splits)


def test_held_out_networks_are_not_trained(synthetic: TranslationTask) -> None:
    for protocol, train_count, held_out_count in (
        (PUBLISHED, 10, 20),
        (PUBLISHED, 5, 20),
        (DRAWN, 15, 15),
        (DRAWN, 5, 25),
    ):
        for draw in range(4):
            training, held_out = split(synthetic, Task("wmt14ende", "hat", train_count, protocol, draw))
            assert (len(training), len(held_out)) == (train_count, held_out_count) and not set(training) & set(held_out)
    (first, held_out), (repeated, same) = (split(synthetic, Task("", "hat", 5, PUBLISHED, draw)) for draw in (0, 3))
    assert np.array_equal(held_out, same) and not np.array_equal(first, repeated)


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(SLOW)))
def test_methods_estimate(method: str, synthetic: TranslationTask) -> None:
    trained, held_out = split(synthetic, Task("", method, 10, PUBLISHED, 0))
    estimates, std = METHODS[method](synthetic, trained)
    error, bleu = np.abs(estimates[held_out] - synthetic.bleu[held_out]).mean(), synthetic.bleu[held_out]
    assert estimates.shape == (30,) and error < 0.7 * np.abs(bleu - synthetic.bleu[trained].mean()).mean()
    assert (std is not None) == method.startswith("calibration")
    if method in UNTRAINED_METHODS:
        assert METHODS[method](synthetic, trained[:0])[0].shape == (30,)


def test_plain_ridge_fits_a_linear_function(synthetic: TranslationTask) -> None:
    columns = np.random.default_rng(1).standard_normal((30, 3))
    result = plain_ridge(columns, columns @ [1.0, 2.0, 3.0], np.arange(25))
    assert np.corrcoef(result[25:], (columns @ [1.0, 2.0, 3.0])[25:])[0, 1] > 0.99


def test_summary_averages_draws_then_tasks() -> None:
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
