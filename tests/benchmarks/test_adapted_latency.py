"""Benchmark adapted_latency: draws of networks, methods and rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.latency import adapted_latency
from nas_core.latency.by_graph.counts import CountsModel
from tests.latency.by_graph.toy import toy_networks


def test_a_draw_has_one_network_of_each_family() -> None:
    families = np.array(["a", "b", "c", "d"] * 5)
    rows = adapted_latency.draw_networks(families, 3, 0)
    assert len(set(families[rows])) == len(rows) == 3
    assert sorted(rows) != sorted(adapted_latency.draw_networks(families, 3, 1))


def test_one_factor_removes_a_common_factor() -> None:
    data = toy_networks(140)
    families = [f"f{row % 14}" for row in range(140)]
    names = [f"{family}_{row // 14:04d}" for row, family in enumerate(families)]
    data = replace(data, families=np.array(families), names=np.array(names))
    model = CountsModel().fit(data)
    model.info |= {"machine": {"device_name": "there"}, "runtime": "torch"}
    noise = np.random.default_rng(0).lognormal(0, 0.03, 140)
    here = replace(data, latency_ms=3 * model.predict(data.graphs) * noise)
    rows = adapted_latency.rows_of(model, here, 3)
    errors = {(row["networks"], row["method"]): row["median_error_percent"] for row in rows}
    assert all(row["test"] == 56 and row["draws"] == 3 for row in rows) and "factor" not in model.info
    for size in adapted_latency.SIZES:
        assert errors[size, "unchanged"] > 60
        assert errors[size, "one factor"] < 4
        assert errors[size, "ridge on costs"] > errors[size, "one factor"]
