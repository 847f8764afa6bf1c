"""What is known before a fit: of the package, of one's own benchmarks, in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, GraphError, described, nasbench201_graphs
from nas_core.predictor import NNFormerPredictor, kendall_tau, load_accuracy_model
from nas_core.predictor.prior import FILE, Benchmark, Prior, read_prior, shipped_prior, write_prior
from nas_core.predictor.statistics.operation_features import operation_features

CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (120, 6)))
GOOD = np.array([3.0 * (g.ops == 2).sum() + (g.ops == 1).sum() - (g.ops == 3).sum() for g in CELLS])
"""What everybody knows of cells: spatial convolutions help, pooling does not."""


def own(seed: int = 0) -> Prior:
    features = operation_features(CELLS)
    return Prior.fit([Benchmark(features, GOOD), Benchmark(features, 100 * GOOD + 7, 0.5)], seed)


def test_networks_that_nobody_trained_are_ordered() -> None:
    predicted = NNFormerPredictor("prior").predict(CELLS)
    assert predicted.shape == (120,) and kendall_tau(predicted, GOOD) > 0.6
    assert NNFormerPredictor("prior").predict(list(CELLS)[:1]) == pytest.approx(predicted[:1])


def test_a_few_trained_networks_add_to_it() -> None:
    odd = GOOD + 4.0 * np.array([(g.ops == 3).sum() for g in CELLS])  # here pooling helps
    before = kendall_tau(NNFormerPredictor("prior").predict(CELLS[30:]), odd[30:])
    fitted = NNFormerPredictor("prior", processes=4, trees=2).fit(CELLS[:30], odd[:30])
    alone = NNFormerPredictor("statistics", processes=4, trees=2).fit(CELLS[:30], odd[:30])
    after = kendall_tau(fitted.predict(CELLS[30:]), odd[30:])
    assert after > before + 0.1 and after > kendall_tau(alone.predict(CELLS[30:]), odd[30:]) - 0.05
    values, spread = fitted.predict_with_spread(CELLS[30:])
    assert np.isfinite(values).all() and (spread > 0).all()
    assert list(fitted.predict_parts(CELLS[30:])) == ["described processes", "processes", "trees"]


def test_a_prior_that_is_wrong_counts_for_nothing() -> None:
    fitted = NNFormerPredictor("prior", processes=2, trees=1).fit(CELLS[:60], -GOOD[:60])
    assert fitted.statistics is not None and fitted.statistics.slope == 0
    assert kendall_tau(fitted.predict(CELLS[60:]), -GOOD[60:]) > 0.7


def test_a_fitted_prior_is_saved_with_what_it_knows(tmp_path: Path) -> None:
    fitted = NNFormerPredictor("prior", prior=own(), processes=2, trees=1).fit(CELLS[:40], GOOD[:40])
    fitted.save(tmp_path / "p.safetensors")
    loaded = load_accuracy_model(tmp_path / "p.safetensors")
    assert np.array_equal(loaded.predict(CELLS), fitted.predict(CELLS))


def test_what_a_prior_does_not_have() -> None:
    prior = NNFormerPredictor("prior")
    for ask in (prior.predict_with_spread, lambda graphs: prior.predict_quantiles(graphs, [0.5])):
        with pytest.raises(ConfigError, match="'prior' has no spread before a fit"):
            ask(CELLS)
    bare = replace(CELLS, operations=None)
    for use in (prior.predict, lambda graphs: prior.fit(graphs, GOOD)):
        with pytest.raises(GraphError, match="nothing says what the operations"):
            use(bare)
    with pytest.raises(ConfigError, match="save"):
        prior.save("never.safetensors")
    with pytest.raises(ConfigError, match="recipe 'best' starts from no prior"):
        NNFormerPredictor("best", prior=own())


def test_any_described_network_is_ordered() -> None:
    chain = Graph([0, 1, 1, 2], [(0, 1), (1, 2), (2, 3)])
    small, large = (described(chain, ["input", name, "output"]) for name in ("avg_pool_3x3", "mbconv_k5_e6"))
    low, high = (NNFormerPredictor("prior").predict([graph])[0] for graph in (small, large))
    assert high > low


def test_scales_of_benchmarks_are_removed() -> None:
    one = own()
    features = operation_features(CELLS)
    same = Prior.fit([Benchmark(features, np.exp(GOOD)), Benchmark(features, GOOD, 0.5)])
    assert np.array_equal(one.columns(features), same.columns(features))
    assert kendall_tau(one.columns(features)[:, 0], GOOD) > 0.7 and one.columns(features).shape == (120, one.width)


def test_files(tmp_path: Path) -> None:
    prior, path = own(), tmp_path / "prior.safetensors"
    write_prior(path, prior, [{"name": "ours", "networks": 120, "source": "here", "licence": "none"}])
    found, header = read_prior(path)
    features = operation_features(CELLS)
    assert (
        np.array_equal(found.columns(features), prior.columns(features)) and header["benchmarks"][0]["name"] == "ours"
    )
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="no whole safetensors"):
        read_prior(path)


def test_the_file_of_the_package_names_its_sources() -> None:
    _, header = read_prior(FILE)
    assert FILE.stat().st_size < 20e6 and shipped_prior() is shipped_prior()
    assert len(header["benchmarks"]) >= 5
    assert all(each["source"] and each["licence"] and each["networks"] > 0 for each in header["benchmarks"])
