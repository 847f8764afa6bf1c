"""Benchmark device_transfer: visible data, results and errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.latency import device_transfer
from benchmarks.parts import published as _published
from benchmarks.parts import transfer as _transfer
from benchmarks.parts import transfer_networks as _transfer_networks
from benchmarks.parts.published import DEVICE_TABLES, LatencyTable, absent, chains, latency_table
from benchmarks.parts.transfer import Case, ridge
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json

DEVICES = ("chip_1", "chip_32", "board", "phone", "server")


def toy_table(networks: int = 160, layers: int = 8, kinds: int = 4) -> LatencyTable:
    """Return devices whose latencies mix three tables of costs, with 1 % noise."""
    stream = np.random.default_rng(0)
    ops = stream.integers(kinds, size=(networks, layers))
    prices = stream.gamma(1.0, 1.0, (3, layers, kinds))
    sums = 1 + np.stack([price_list[np.arange(layers), ops].sum(1) for price_list in prices], 1)
    mixture = stream.uniform(0.2, 3, (3, len(DEVICES)))
    return LatencyTable(ops, chains(ops), DEVICES, sums @ mixture * stream.normal(1, 0.01, (networks, len(DEVICES))))


@pytest.fixture
def empty_cache() -> Iterator[None]:
    """Clear the cache of tables before and after a test."""
    latency_table.cache_clear()
    yield
    latency_table.cache_clear()


def error(method: str, size: int) -> float:
    return device_transfer.evaluate(toy_table(), device_transfer.Task("toy", "phone", size, 0, method))["mape"]


def test_leave_one_out_errors_equal_those_of_separate_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transfer, "PENALTIES", [0.01])
    stream = np.random.default_rng(1)
    x, y, weights = stream.normal(size=(9, 4)), stream.normal(size=9), stream.uniform(0.5, 2, 9)
    share, squares = weights / weights.sum(), []
    for row in range(9):
        rest = np.arange(9) != row
        mean_x, mean_y = (np.average(value[rest], 0, weights[rest]) for value in (x, y))
        centred, pull = x[rest] - mean_x, (x[rest] - mean_x).T * share[rest]
        slopes = np.linalg.solve(pull @ centred + 0.01 * np.eye(4), pull @ (y[rest] - mean_y))
        squares.append(weights[row] * ((x[row] - mean_x) @ slopes + mean_y - y[row]) ** 2)
    assert ridge(x, y, weights, x)[0] == pytest.approx(np.mean(squares))


def test_the_same_chip_is_not_a_source() -> None:
    assert [Case(toy_table(), name, 10, 0).sources for name in ("chip_1", "phone")] == [[2, 3, 4], [0, 1, 2, 4]]


def test_other_devices_reduce_the_error_with_few_networks() -> None:
    scratch, transfer, own, logs = (error(method, 15) for method in device_transfer.LINEAR)
    assert max(transfer, own, logs) < scratch / 2
    assert transfer < 2
    assert error("linear", 120) < scratch / 4


@pytest.mark.parametrize("method", [*device_transfer.METHODS])
def test_predictions_do_not_use_test_latencies(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transfer_networks, "PRETRAIN_EPOCHS", 1)
    monkeypatch.setattr(_transfer_networks, "finetuning_epochs", lambda size: 1)
    case = Case(toy_table(60), "chip_1", 20, 0)
    altered = case.table.latency_ms.copy()
    altered[case.test, 0] *= 3
    altered[:, 1] *= 5
    other = Case(replace(case.table, latency_ms=altered), "chip_1", 20, 0)
    predicted = device_transfer.METHODS[method](case)
    assert predicted.shape == (40,) and np.isfinite(predicted).all()
    assert np.array_equal(device_transfer.METHODS[method](other), predicted)


def test_summary_averages_devices() -> None:
    def record(device: str, draw: int, mape: float, **more: Any) -> dict[str, Any]:
        key = device_transfer.Task("fbnet", device, 20, draw, "linear").key
        return key | {"mape": mape, "within_10": 50.0, "tau": 0.5, "cpu_s": 1.0} | more

    records = [record("a", 0, 1.0), record("a", 1, 3.0), record("b", 0, 6.0), record("a", 2, 99.0, settings="old")]
    (row,) = device_transfer.summary(records)
    assert (row["mean"]["mape"], row["count"], row["draws"], row["few"]) == (4.0, 2, 1, None)
    assert row["devices"]["a"]["mape"] == 2.0
    (row,) = device_transfer.summary([record(name, 0, 2.0) for name in (*device_transfer.SELECTED_DEVICES, "x")])
    assert row["few"]["mape"] == 2.0


@pytest.mark.usefixtures("empty_cache")
def test_runs_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = toy_table()
    file = tmp_path / "t.npz"
    latency = np.concatenate([table.latency_ms, np.full((160, 1), 9.0)], 1)
    latency[3, 5] = 0.01
    np.savez(file, ops=table.ops.astype(np.int8), devices=np.array([*DEVICES, "slow"]), latency_ms=latency)
    monkeypatch.setitem(DEVICE_TABLES, "fbnet", file)
    assert len(latency_table("fbnet").ops) == 159
    out, work = tmp_path / "r.json", tmp_path / "w.jsonl"
    arguments = ["--tables", "fbnet", "--sizes", "20", "--draws", "0", "--work", str(work), "--out", str(out)]
    device_transfer.main([*arguments, "--methods", "linear", "--devices", "phone", "board"])
    device_transfer.main([*arguments, "--methods", "linear", "transfer", "--devices", "phone", "board"])
    assert len(read_jsonl(work)) == 4
    rows = {row["method"]: row for row in read_json(out)["rows"]}
    assert set(rows) == {"linear", "transfer"}
    assert rows["transfer"]["mean"]["mape"] < rows["linear"]["mean"]["mape"]


@pytest.mark.skipif(absent(_published.FBNET_LATENCY) is not None, reason=str(absent(_published.FBNET_LATENCY)))
def test_the_published_table() -> None:
    table = latency_table("fbnet")
    assert table.ops.shape == (5000, 22) and len(table.devices) == 27
    few = {
        m: device_transfer.evaluate(table, device_transfer.Task("fbnet", "gold_6240", 20, 0, m))
        for m in ("linear", "transfer")
    }
    assert few["transfer"]["mape"] < 4 < few["linear"]["mape"]
