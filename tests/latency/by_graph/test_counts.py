"""Prices of operators."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.latency.by_graph.counts import KINDS, CountsModel, costs_by_kind, fit_prices
from tests.latency.by_graph.toy import CONV, MATMUL, MS_PER_GFLOP, toy_graph, toy_networks


def test_sums_are_those_of_the_nodes() -> None:
    graphs = toy_networks(5).graphs
    sums = costs_by_kind(graphs).reshape(5, 3, KINDS)
    assert graphs.static is not None and sums[:, 1].sum(1) == pytest.approx(graphs.static[:, 1], rel=1e-5)
    assert sums[:, 2].sum(1) == pytest.approx(graphs.static[:, 3] * 10, rel=1e-5)
    assert sums[:, 0, 0].max() == 0, "an input costs nothing"


def test_prices_are_found_and_unseen_kinds_cost_the_average() -> None:
    data = toy_networks(90)
    weights = fit_prices(costs_by_kind(data.graphs), data.latency_ms, 1e-6)
    prices = weights[KINDS : 2 * KINDS]
    assert weights.min() >= 0
    assert prices[CONV] == pytest.approx(MS_PER_GFLOP[CONV], rel=0.05)
    assert prices[MATMUL] == pytest.approx(MS_PER_GFLOP[MATMUL], rel=0.05)
    assert 0.5 * prices[MATMUL] < prices[5] < prices[CONV]
    one_price = fit_prices(costs_by_kind(data.graphs), data.latency_ms, 1e9)[KINDS : 2 * KINDS]
    assert one_price == pytest.approx(one_price[0], rel=1e-3)
    unseen = toy_graph(np.random.default_rng(1), (5,), nodes=12)
    assert CountsModel().fit(data).predict([unseen])[0] > 0.01
