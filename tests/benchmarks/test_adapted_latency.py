"""Benchmark adapted_latency: draws of networks, changes, methods and rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.latency import adapted_latency
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from tests.latency.by_graph.toy import toy_networks


def test_a_draw_has_one_network_of_each_family() -> None:
    families = np.array(["a", "b", "c", "d"] * 5)
    rows = adapted_latency.draw_networks(families, 3, 0)
    assert len(set(families[rows])) == len(rows) == 3
    assert sorted(rows) != sorted(adapted_latency.draw_networks(families, 3, 1))


def test_the_change_is_that_of_networks_measured_twice() -> None:
    def measured(latencies: dict[str, float]) -> NetworkSet:
        rows = [{"name": name, "measured": {"torch": {"relative": value}}} for name, value in latencies.items()]
        return NetworkSet(Path("set"), {}, {}, {"torch": 1.0}, [*rows, {"name": "slow", "error": "slow"}])

    first, second = measured({"a": 1.0, "b": 2.0, "c": 4.0}), measured({"a": 1.1, "c": 3.2, "d": 9.0})
    assert adapted_latency.changes_percent(first, second) == {"torch": 15.0}


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
