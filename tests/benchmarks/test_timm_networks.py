"""Benchmark timm_networks: folds, the quadratic fit and merged results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.latency import timm_networks
from benchmarks.parts import timm_folds
from benchmarks.parts.timm_folds import module_folds, network_folds, quadratic
from nas_core.files.reading import read_json
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from tests.latency.by_graph.toy import toy_networks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of networks with synthetic graphs."""
    data = toy_networks(60)
    networks = NetworkSet.create(tmp_path / "i7", {"source": "timm"}, {"device_name": "i7"}, {"torch": 1.0})
    static = data.graphs.static
    assert static is not None
    for index, (name, family) in enumerate(zip(data.names.tolist(), data.families.tolist(), strict=True)):
        costs = {"gmacs": static[index, 1] / 2, "macts": 1.0 + static[index, 3], "params_m": static[index, 2] + 0.1}
        times = {"corrected_ms": data.latency_ms[index], "relative": data.latency_ms[index], "reference_ms": 1.0}
        row = {
            "name": name,
            "family": family,
            "settings": {"model": name, "batch_size": 1},
            "measured": {"torch": times},
        }
        networks.append({**row, "published": costs if index else {}})
    monkeypatch.setattr(timm_folds, "read_dataset", lambda folder, runtime: data)
    return tmp_path / "i7"


def bench(folder: Path, *more: str) -> dict[str, Any]:
    out = folder.with_name("timm_networks.json")
    arguments = [
        "--data",
        str(folder),
        "--folds",
        "3",
        "--work",
        str(folder.with_name("cells")),
        "--out",
        str(out),
        *more,
    ]
    assert timm_networks.main(arguments) == 0
    result: dict[str, Any] = read_json(out)
    return result


def row(result: Mapping[str, Any], **same: str) -> dict[str, Any]:
    (only,) = [row for row in result["rows"] if all(row[name] == value for name, value in same.items())]
    return dict(only)


def test_a_module_is_in_one_fold() -> None:
    modules = ["resnet"] * 7 + ["vit"] * 4 + ["swin"] * 3 + ["levit"]
    folds = module_folds(modules, 3)
    assert all(
        len({fold for fold, module in zip(folds.tolist(), modules, strict=True) if module == name}) == 1
        for name in modules
    )
    assert sorted(np.bincount(folds).tolist()) == [4, 4, 7]
    assert np.bincount(network_folds(10, 3)).tolist() == [4, 3, 3]
    assert network_folds(10, 3).tolist() == network_folds(10, 3).tolist()


def test_the_quadratic_fit_is_one_of_logarithms() -> None:
    costs = np.exp(np.random.default_rng(0).normal(size=(40, 3)))
    logs = np.log(costs)
    latency_ms = np.exp(0.5 + logs[:, 0] - 0.2 * logs[:, 1] * logs[:, 2] + 0.1 * logs[:, 2] ** 2)
    np.testing.assert_allclose(quadratic(costs[:30], latency_ms[:30], costs[30:]), latency_ms[30:])


def test_models_and_devices_are_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = bench(folder, "--models", "quadratic", "flops")
    assert first["devices"]["i7"]["left_out"] == {"skipped": 0, "without costs": 1}
    assert len(first["rows"]) == 4 and row(first, model="flops", split="modules")["networks"] == 59
    capsys.readouterr()
    both = bench(folder, "--models", "counts", "flops")
    assert "flops, modules" not in capsys.readouterr().out, "it is not computed again"
    assert len(both["rows"]) == 6 and row(both, model="flops", split="modules") == row(
        first, model="flops", split="modules"
    )
    counts = row(both, model="counts", split="modules")
    assert counts["mape_percent"] < row(both, model="flops", split="modules")["mape_percent"]
    assert set(counts["by_module"]) == {"conv", "product", "mixed"}
