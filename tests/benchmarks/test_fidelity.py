"""The benchmark of short trainings: equal costs, and what its table compares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.parts import published
from benchmarks.predictor import fidelity
from benchmarks.predictor.fidelity import Task, Trained, chosen, summary
from tests.predictor.graphs import random_graphs

needs_tables = pytest.mark.skipif(
    published.absent(published.NASBENCH101_VALID) is not None, reason=str(published.absent(published.NASBENCH101_VALID))
)


def record(long: int, epochs: int, draw: int, tau: float) -> dict[str, Any]:
    task = Task("nasbench101", 50, long, epochs, draw)
    return {**task.key, "short": 7, "cost": 5.0, "tau": tau, "within_one": 0.7, "within_two": 0.9, "fit_cpu_s": 1.0}


def test_both_cost_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "JUDGED", 10)
    cost = np.random.default_rng(0).random(100) + 0.5
    cells = Trained(random_graphs((5,) * 100), {4: cost, 108: cost}, cost)
    order = np.random.default_rng(1).permutation(100)
    long, short = chosen(cells, Task("nasbench101", 8, 6, 4, 0), order)
    spent = cost[long].sum() + cost[short].sum() * 4 / 108
    alone = cost[chosen(cells, Task("nasbench101", 8, 8, 0, 0), order)[0]].sum()
    assert alone - cost.max() * 4 / 108 <= spent <= alone
    assert len(short) > 30 and not set(short) & (set(long) | set(order[-10:])) and long.tolist() == order[:6].tolist()


def test_differences_are_taken_draw_by_draw() -> None:
    records = [record(50, 0, 0, 0.6), record(50, 0, 1, 0.8), record(37, 4, 0, 0.7), record(37, 4, 1, 0.78)]
    alone, mixed = summary(records)
    assert (alone["epochs"], alone["gain"], alone["better_draws"]) == (0, None, None)
    assert (mixed["gain"], mixed["better_draws"], mixed["draws"]) == (0.04, 1, 2)
    assert mixed["tau"] == 0.74 and mixed["deviation"] == 0.04


@needs_tables
def test_published_lengths() -> None:
    rows, accuracies, seconds = published.nasbench101_lengths()
    assert list(accuracies) == [4, 12, 36, 108] and len(rows) == len(seconds) == len(accuracies[4]) > 20_000
    means = [float(np.median(each)) for each in accuracies.values()]
    assert means == sorted(means) and seconds.min() > 100
