"""The prior: of the package, of one's own benchmarks, fitted further, in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.graph import Graph, with_operations
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.predictor import PriorPredictor, StatisticsPredictor, kendall_tau, load_accuracy_model
from nas_core.predictor.artifact import write_artifact
from nas_core.predictor.prior import FILE, KIND, Benchmark, Prior, read_prior
from nas_core.predictor.statistics.operation_features import operation_features

CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (120, 6)))
FEATURES = operation_features(CELLS)
GOOD = np.array([3.0 * (g.ops == 2).sum() + (g.ops == 1).sum() - (g.ops == 3).sum() for g in CELLS])
"""Spatial convolutions help, pooling does not."""


@pytest.fixture(scope="module")
def prior() -> Prior:
    return Prior.fit([Benchmark(FEATURES, GOOD), Benchmark(FEATURES, 100 * GOOD + 7, 0.5)])


def test_untrained_networks_are_ordered() -> None:
    predictor = PriorPredictor()
    predicted = predictor.predict(CELLS)
    assert predicted.shape == (120,) and kendall_tau(predicted, GOOD) > 0.6
    assert predictor.predict(list(CELLS)[:1]) == pytest.approx(predicted[:1])
    chain = Graph([0, 1, 1, 2], [(0, 1), (1, 2), (2, 3)])
    small, large = (with_operations(chain, ["input", name, "output"]) for name in ("avg_pool_3x3", "mbconv_k5_e6"))
    assert predictor.predict([large])[0] > predictor.predict([small])[0]


def test_a_fit_corrects_the_prior(tmp_path: Path) -> None:
    odd = GOOD + 4.0 * np.array([(g.ops == 3).sum() for g in CELLS])  # here pooling helps
    before = kendall_tau(PriorPredictor().predict(CELLS[30:]), odd[30:])
    fitted = PriorPredictor(processes=2, trees=1).fit(CELLS[:30], odd[:30])
    alone = StatisticsPredictor(processes=2, trees=1).fit(CELLS[:30], odd[:30])
    after = kendall_tau(fitted.predict(CELLS[30:]), odd[30:])
    assert after > before + 0.1 and after > kendall_tau(alone.predict(CELLS[30:]), odd[30:]) - 0.05
    values, deviation = fitted.predict_with_std(CELLS[30:])
    assert np.isfinite(values).all() and (deviation > 0).all()
    assert list(fitted.predict_components(CELLS[30:])) == ["described processes", "processes", "trees"]
    fitted.save(tmp_path / "p.safetensors")
    assert np.array_equal(load_accuracy_model(tmp_path / "p.safetensors").predict(CELLS[30:]), values)


def test_a_wrong_prior_has_no_weight() -> None:
    fitted = PriorPredictor(processes=2, trees=1).fit(CELLS[:60], -GOOD[:60])
    assert fitted.statistics.slope == 0
    assert kendall_tau(fitted.predict(CELLS[60:]), -GOOD[60:]) > 0.7


def test_files(tmp_path: Path, prior: Prior) -> None:
    path = tmp_path / "prior.safetensors"
    benchmarks = [{"name": "ours", "networks": 120, "source": "here", "licence": "none"}]
    write_artifact(path, KIND, {"benchmarks": benchmarks}, prior.to_tensors())
    reloaded, header = read_prior(path)
    assert np.array_equal(reloaded.columns(FEATURES), prior.columns(FEATURES))
    assert header["benchmarks"][0]["name"] == "ours"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="not a complete safetensors"):
        read_prior(path)


def test_the_shipped_file_names_its_sources() -> None:
    _, header = read_prior(FILE)
    assert FILE.stat().st_size < 20e6 and len(header["benchmarks"]) >= 5
    assert all(part["source"] and part["licence"] and part["networks"] > 0 for part in header["benchmarks"])
