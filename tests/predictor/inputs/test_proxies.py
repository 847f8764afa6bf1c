"""Scores as quantiles among those of training graphs."""

from __future__ import annotations

import json

import numpy as np

from nas_core.predictor.proxy_inputs import MIDDLE, POINTS, ProxyInputs
from tests.predictor.graphs import random_graphs


def test_the_order_is_kept_and_the_scale_is_not() -> None:
    graphs = random_graphs((5,) * 9)
    scores = np.array([-1e8, 3.0, 3.0, 3.1, 400.0, 1e30, -np.inf, np.inf, 5.0])
    column = ProxyInputs.fit({"synflow": scores}, 9).put(graphs, {"synflow": scores}).static
    assert column is not None and column.shape == (9, 1)
    seen = column[:, 0] - MIDDLE
    assert (np.argsort(seen, kind="stable") == np.argsort(np.clip(scores, -1e8, 1e30), kind="stable")).all()
    assert seen[1] == seen[2] and np.abs(seen).max() < 3 and abs(np.median(seen)) < 1e-6
    again = ProxyInputs.fit({"synflow": np.exp(np.clip(scores, -9, 9))}, 9)
    assert again.deviations != () and len(again.values[0]) < 9


def test_features_that_graphs_have_stay_in_front() -> None:
    graphs = random_graphs((5,) * 6, features=True)
    found = ProxyInputs.fit({"a": range(6), "b": range(6)}, 6).put(graphs, [{"b": 1.0, "a": 2.0}] * 6)
    assert found.static is not None and graphs.static is not None and found.static.shape == (6, 6)
    np.testing.assert_array_equal(found.static[:, :4], graphs.static)
    assert (found.static[:, 4] > found.static[:, 5]).all()


def test_many_values_take_few_points_and_survive_json() -> None:
    values = np.random.default_rng(0).standard_normal(3000)
    inputs = ProxyInputs.fit({"nwot": values, "flat": np.ones(3000), "none": np.full(3000, -np.inf)}, 3000)
    assert [len(points) for points in inputs.values] == [POINTS, 1, 1]
    assert ProxyInputs.from_json(json.loads(json.dumps(inputs.to_json()))) == inputs
    graphs = random_graphs((5,) * 3000)
    seen = inputs.put(graphs, {"nwot": values, "flat": values, "none": values}).static
    assert seen is not None
    np.testing.assert_allclose(seen[:, 0] - MIDDLE, values, atol=0.6)
    assert (seen[:, 1:] == MIDDLE).all()
