"""Drift of a machine, estimated from the order of the measurements."""

import numpy as np
import pytest

from nas_core.latency.by_genes.drift import autocorrelation, estimate_drift, running_median
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.predictor.metrics import mape
from nas_core.space import get_space


def test_running_median_by_hand():
    values = np.array([1.0, 9.0, 2.0, 3.0, 100.0])
    assert running_median(values, 3).tolist() == [2, 2, 3, 3, 3]
    assert running_median(values, 2, leave_out=True).tolist() == [5.5, 1.5, 6, 51, 2.5]
    assert running_median(values, 50).tolist() == [3] * 5
    # Without its own value a row has one neighbour less than there are values.
    assert running_median(values, 50, leave_out=True).tolist() == [6, 2.5, 6, 5.5, 2.5]
    longer = np.array([5.0, 1, 4, 2, 8, 7, 3, 9, 6])
    ends = [longer[:7], longer[:7], longer[:7]], [longer[2:], longer[2:], longer[2:]]
    middle = [longer[place - 3 : place + 4] for place in (3, 4, 5)]
    assert running_median(longer, 7).tolist() == [np.median(near) for near in [*ends[0], *middle, *ends[1]]]


def test_autocorrelation_sees_order():
    noise = np.exp(np.random.default_rng(0).normal(size=500) * 0.1)
    assert abs(autocorrelation(noise)) < 0.15
    assert autocorrelation(np.sort(noise)) > 0.9


def test_finds_phases_from_training_rows_and_interpolates_the_held_out():
    space, rng = get_space("hat_small"), np.random.default_rng(0)
    rows = space.sample_rows(rng, 600)
    truth = 5 + 3.0 * (rows >= 0).sum(1) ** 0.8
    state = np.where((np.arange(600) // 120) % 2, 1.4, 1.0)
    latency = truth * state * np.exp(rng.normal(size=600) * 0.01)
    shuffled = rng.permutation(600)
    train, test = shuffled[:480], np.sort(shuffled[480:])
    drift = estimate_drift(lambda: LinearModel(space), rows[train], latency[train], train)
    # The median state is one of the two: the factor tells them apart, up to that common factor.
    relative = drift.at(test) / state[test]
    assert np.abs(relative / np.median(relative) - 1).mean() < 0.02
    before = LinearModel(space).fit(rows[train], latency[train])
    after = LinearModel(space).fit(rows[train], latency[train] / drift.at(train))
    assert mape(before.predict_rows(rows[test]), latency[test]) > 8
    assert mape(after.predict_rows(rows[test]) * drift.at(test), latency[test]) < 3


def test_factors_belong_to_the_order_and_not_to_the_rows():
    space, rng = get_space("hat_small"), np.random.default_rng(0)
    rows, order = space.sample_rows(rng, 200), rng.permutation(200)
    latency = (5 + 3.0 * (rows >= 0).sum(1)) * np.where(order < 80, 1.5, 1.0)
    drift = estimate_drift(lambda: LinearModel(space), rows, latency, order)
    assert drift.order.tolist() == list(range(200)) and drift.order.dtype == np.float64
    assert drift.at(np.array([20.0, 60, 120, 180])) == pytest.approx([1.5, 1.5, 1, 1], rel=0.02)
    assert drift.at(np.array([-5.0, 500])) == pytest.approx(drift.factor[[0, -1]])
