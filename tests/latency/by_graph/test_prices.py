"""Regressions on costs."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import GraphError, Graphs
from nas_core.latency.by_graph import CountsModel, FlopsModel
from nas_core.latency.by_graph.price_list import KINDS, costs_by_kind, relative_nnls, shrunk_prices
from tests.latency.by_graph.toy import CONV, MATMUL, MS_PER_GFLOP, toy_graph, toy_networks


def test_relative_errors_count_and_weights_are_not_negative() -> None:
    inputs = np.array([[1.0, 0.0], [100.0, 0.0], [0.0, 1.0]])
    weights = relative_nnls(inputs, np.array([2.0, 100.0, 5.0]))
    squared = [np.square(w * inputs[:2, 0] / [2.0, 100.0] - 1).sum() for w in (weights[0], weights[0] + 0.01)]
    assert weights[1] == pytest.approx(5.0) and weights[0] == pytest.approx(1.2) and squared[0] < squared[1]
    assert relative_nnls(np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([2.0, 1.0])).min() == 0.0


def test_sums_are_those_of_the_nodes() -> None:
    graphs = toy_networks(5).graphs
    sums = costs_by_kind(graphs).reshape(5, 3, KINDS)
    assert graphs.static is not None and sums[:, 1].sum(1) == pytest.approx(graphs.static[:, 1], rel=1e-5)
    assert sums[:, 2].sum(1) == pytest.approx(graphs.static[:, 3] * 10, rel=1e-5)
    assert sums[:, 0, 0].max() == 0, "an input costs nothing"
    odd = Graphs(np.full_like(graphs.ops, 40), graphs.edges, graphs.sizes, graphs.edge_counts, costs=graphs.costs)
    with pytest.raises(GraphError, match="operation index 40"):
        costs_by_kind(odd)


def test_prices_are_found_and_unseen_kinds_cost_what_others_do() -> None:
    data = toy_networks(90)
    prices = shrunk_prices(costs_by_kind(data.graphs), data.latency_ms, 1e-6)[KINDS : 2 * KINDS]
    assert prices[CONV] == pytest.approx(MS_PER_GFLOP[CONV], rel=0.05)
    assert prices[MATMUL] == pytest.approx(MS_PER_GFLOP[MATMUL], rel=0.05)
    assert 0.5 * prices[MATMUL] < prices[5] < prices[CONV]
    one_price = shrunk_prices(costs_by_kind(data.graphs), data.latency_ms, 1e9)[KINDS : 2 * KINDS]
    assert one_price == pytest.approx(one_price[0], rel=1e-3)


def test_an_unseen_kind_is_not_free() -> None:
    data = toy_networks(60)
    graph = toy_graph(np.random.default_rng(1), (5,), nodes=12)
    by_all = FlopsModel().fit(data).predict([graph])[0]
    assert CountsModel().fit(data).predict([graph])[0] > 0.3 * by_all
