import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError, SpaceError, UnknownChoiceError
from nas_core.latency.by_genes import LatencyData, LinearModel, fit, judge
from nas_core.latency.by_genes.fit import random_split
from nas_core.space import get_space


def made(count, space="hat_small", drifting=False, referenced=False, seed=0):
    searched, rng = get_space(space), np.random.default_rng(seed)
    rows = searched.sample_rows(rng, count)
    latency = (5 + 2.0 * (rows >= 0).sum(1)) * np.exp(rng.normal(size=count) * 0.01)
    if drifting:
        latency *= np.where((np.arange(count) // 60) % 2, 1.4, 1.0)
    return LatencyData(searched, "rows", rows, latency, np.arange(count, dtype=float), referenced)


def linear(data):
    return lambda: LinearModel(data.space, data.source)


def test_split_is_seeded_complete_and_of_the_size_asked_for():
    train, test = random_split(100, 0.2, 3)
    assert sorted([*train, *test]) == list(range(100)) and len(test) == 20
    assert test.tolist() == random_split(100, 0.2, 3)[1].tolist() != random_split(100, 0.2, 4)[1].tolist()


def test_held_out_rows_are_not_learnt_from():
    data = made(80)
    spoilt = data.latency_ms.copy()
    test = random_split(80, 0.2, 0)[1]
    spoilt[test] *= 3
    found = fit(LatencyData(data.space, "rows", data.inputs, spoilt, data.order, True), linear(data))
    assert found.held_out.mape_percent == pytest.approx(200 / 3, abs=2)
    assert found.held_out.coverage_percent == 0


def test_drift_is_looked_for_only_where_no_reference_was_measured():
    assert fit(made(300, drifting=True), linear(made(10))).without_drift.mape_percent < 3
    assert fit(made(300), linear(made(10))).without_drift is None
    assert fit(made(300, drifting=True, referenced=True), linear(made(10))).without_drift is None
    assert fit(made(300, drifting=True), linear(made(10)), drift="off").without_drift is None
    assert fit(made(300, referenced=True), linear(made(10)), drift="on").without_drift is not None


def test_metrics_travel_with_the_model():
    found = fit(made(80), linear(made(80)))
    assert found.model.info["measurements"] == 80
    assert found.model.info["metrics"]["mape_percent"] == found.held_out.mape_percent < 2
    assert found.held_out.options_percent == 100


def test_judge_on_other_measurements():
    data = made(80)
    model = fit(data, linear(data)).model
    assert judge(model, made(50, seed=1)).mape_percent < 2
    assert judge(model, made(50, seed=1).scaled(1.5)).mape_percent == pytest.approx(100 / 3, abs=2)
    with pytest.raises(SpaceError, match="'hat_wmt14_en_de'"):
        judge(model, made(50, "hat_wmt14_en_de"))


def test_wrong_inputs():
    data = made(12)
    with pytest.raises(DataError, match="got 12 measurements, of which 3 would be held out"):
        fit(data, linear(data))
    with pytest.raises(ConfigError, match=r"holdout is 1\.5"):
        fit(data, linear(data), holdout=1.5)
    with pytest.raises(UnknownChoiceError, match="auto, on, off"):
        fit(data, linear(data), drift="maybe")
