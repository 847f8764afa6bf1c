"""The predictor as users hold it."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor import NNFormerPredictor, kendall_tau
from nas_core.predictor.base import within
from nas_core.predictor.training import checkpoint as checkpoint_module
from tests.predictor.graphs import TINY, random_graphs, sizes_of_operations


def test_with_graph_statistics(
    tmp_path: Path, graphs: Graphs, targets: np.ndarray, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = {**TINY, "statistics": 0.6, "targets": "normal", "unseen": "warn"}
    with pytest.raises(ConfigError, match="not fitted"):
        _ = NNFormerPredictor("paper", **recipe).network_share
    with caplog.at_level("INFO"):
        predictor = NNFormerPredictor("paper", **recipe).fit(graphs, targets)
    assert predictor.network_share == pytest.approx(0.4)
    told = f"recipe paper on {len(graphs)} graphs: each prediction is 0.40 NN-Former (1 network) and 0.60 graph"
    assert told in caplog.text
    others = random_graphs(tuple([5, 6, 7] * 20), seed=2)
    assert kendall_tau(predictor.predict(others), sizes_of_operations(others)) > 0.5
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    np.testing.assert_allclose(loaded.predict(others), predictor.predict(others), rtol=1e-12)  # sums of loaded arrays
    assert loaded.predict_with_spread(others)[1].max() > 0
    assert np.isfinite(loaded.predict([Graph([0, 9, 4], [(0, 1), (1, 2)])])).all()


def test_shares_and_spread_are_learned_from_graphs_that_are_left_out(
    tmp_path: Path, graphs: Graphs, targets: np.ndarray
) -> None:
    small = {**TINY, "epochs": 2, "processes": 2, "trees": 2}
    predictor = NNFormerPredictor("best", **small).fit(graphs, targets)
    assert predictor.network_share < 0.4, "two epochs teach a network nothing"
    others = random_graphs(tuple([5, 6, 7] * 60), seed=2)
    predicted, spread = predictor.predict_with_spread(others)
    off = np.abs(predicted - sizes_of_operations(others)) / spread
    assert 0.5 < np.mean(off <= 1) < 0.9 and np.mean(off <= 2) > 0.85
    predictor.save(tmp_path / "p.safetensors")
    again = NNFormerPredictor.load(tmp_path / "p.safetensors").predict_with_spread(others)
    np.testing.assert_allclose(again, (predicted, spread), rtol=1e-9)
    given = NNFormerPredictor("best", statistics=0.5, **small).fit(graphs, targets)
    assert given.network_share == 0.5


@pytest.mark.parametrize("scale", ["normal", "mean"])
def test_scales_return_the_users_units(scale: str, graphs: Graphs, targets: np.ndarray) -> None:
    percent = 90 + 5 * targets
    predicted = NNFormerPredictor("paper", targets=scale, **TINY).fit(graphs, percent).predict(graphs)
    assert predicted.min() > 85 and predicted.max() < 100


class Stop(Exception):
    pass


def test_an_interrupted_fit_goes_on_identically(
    tmp_path: Path, graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "EVERY_S", 0.0)
    whole = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets).predict(graphs)

    def interrupt(at: int) -> Any:
        def progress(step: int, steps: int, loss: float) -> None:
            assert 0 < step <= steps and np.isfinite(loss)
            if step == at:
                raise Stop

        return progress

    file = tmp_path / "fit"
    for at in (7, 30):  # in the first member, then in the second
        with pytest.raises(Stop):
            NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, progress=interrupt(at), checkpoint=file)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ConfigError, match="epochs"):
        NNFormerPredictor("paper", members=2, **{**TINY, "epochs": 9}).fit(graphs, targets, checkpoint=file)
    with pytest.raises(ConfigError, match="data"):
        NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets + 1, checkpoint=file)
    resumed = NNFormerPredictor("paper", members=2, **TINY).fit(graphs, targets, checkpoint=file)
    np.testing.assert_array_equal(resumed.predict(graphs), whole)
    assert not list(tmp_path.iterdir())


def test_a_failed_fit_leaves_what_was_fitted(tmp_path: Path, graphs: Graphs, targets: np.ndarray) -> None:
    def stop(step: int, steps: int, loss: float) -> None:
        if step == 10:
            raise Stop

    new = NNFormerPredictor("best", processes=1, trees=0, **TINY)
    with pytest.raises(Stop):
        new.fit(graphs, targets, progress=stop)
    assert not new.fitted and new.info == {} and new.statistics is None and not new.models
    with pytest.raises(ConfigError, match="not fitted"):
        new.predict(graphs)
    before, spread = new.fit(graphs, targets).predict_with_spread(graphs)
    info, known = dict(new.info), new.known
    others = random_graphs((6,) * 30, seed=9, features=True)
    for error, data, wanted, more in (
        (Stop, others, np.arange(30.0), {"progress": stop}),
        (DataError, others, np.full(30, np.nan), {}),
        (GraphError, None, targets, {}),
    ):
        with pytest.raises(error):
            new.fit(data, wanted, **more)
        after = new.predict_with_spread(graphs)
        np.testing.assert_array_equal(after, (before, spread))
        assert new.info == info and new.known == known and new.recipe.model.attributes == 0
    new.save(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(NNFormerPredictor.load(tmp_path / "p.safetensors").predict(graphs), before)


def test_the_model_reads_what_the_graphs_have(tmp_path: Path) -> None:
    featured = random_graphs((5, 40, 7) * 8, seed=4, features=True)
    recipe = {**TINY, "epochs": 2, "precision": "fp32"}
    predictor = NNFormerPredictor("paper", **recipe).fit(featured, np.linspace(0, 1, 24))
    model = predictor.recipe.model
    assert (model.attributes, model.shapes, model.static, model.max_nodes) == (8, 4, 4, 43)
    assert featured.attributes is not None
    moved = replace(featured, attributes=featured.attributes + 1)
    assert not np.allclose(predictor.predict(moved), predictor.predict(featured), atol=1e-6)
    predictor.save(tmp_path / "p.safetensors")
    loaded = NNFormerPredictor.load(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(loaded.predict(featured), predictor.predict(featured))
    bare = random_graphs((5, 6, 7) * 8)
    values = sizes_of_operations(bare)
    fresh = NNFormerPredictor("paper", **recipe).fit(bare, values).predict(bare)
    np.testing.assert_array_equal(predictor.fit(bare, values).predict(bare), fresh)
    assert predictor.recipe.model.max_nodes == 32
    blind = NNFormerPredictor("paper", attributes=0, shapes=0, static=0, **recipe).fit(featured, np.linspace(0, 1, 24))
    assert blind.recipe.model.attributes == 0
    np.testing.assert_array_equal(blind.predict(moved), blind.predict(featured))


def test_a_copy_makes_scorers_of_its_own(fitted: NNFormerPredictor, graphs: Graphs) -> None:
    """Recorded passes of a GPU cannot be copied; NASLib copies predictors."""
    expected = fitted.predict(graphs)
    twin = copy.deepcopy(fitted)
    assert isinstance(twin, NNFormerPredictor) and all(
        a is not b for a, b in zip(twin.models, fitted.models, strict=True)
    )
    np.testing.assert_array_equal(twin.predict(graphs), expected)
    np.testing.assert_array_equal(fitted.predict(graphs), expected)


def test_wrong_graphs_and_targets(graphs: Graphs, targets: np.ndarray, fitted: NNFormerPredictor) -> None:
    state = torch.get_rng_state()
    paper, latency = (NNFormerPredictor(name, epochs=1, dim=16, depth=1) for name in ("paper", "latency"))
    diverging = NNFormerPredictor("paper", **{**TINY, "lr": 1e38, "warmup": 0.0})
    cases: list[tuple[type[NasExtError], str, Any]] = [
        (DataError, "one number per graph", lambda: paper.fit(graphs, targets[:-1])),
        (DataError, "target 0 is nan", lambda: paper.fit(graphs, targets * np.nan)),
        (DataError, "no row of numbers", lambda: paper.fit(graphs, ["a"] * len(targets))),
        (DataError, "at least 2", lambda: paper.fit(graphs[:1], targets[:1])),
        (DataError, "above 0", lambda: latency.fit(graphs, targets - 5)),
        (DataError, r"expected fractions .*targets='mean'", lambda: paper.fit(graphs, 90 + targets)),
        (ConfigError, "training diverged; give a smaller lr", lambda: diverging.fit(graphs, targets)),
        (GraphError, r"a graph has 42 nodes.*max_nodes=43", lambda: fitted.predict(random_graphs((40,)))),
        (GraphError, "got", lambda: fitted.predict(graphs[0])),  # type: ignore[arg-type]
    ]
    for error, message, call in cases:
        with pytest.raises(error, match=message):
            call()
    assert torch.equal(torch.get_rng_state(), state), "the caller's random stream"


def test_an_operation_without_an_index_becomes_an_unknown_one() -> None:
    graphs = Graphs.of([Graph([0, 9, 4], [(0, 1), (1, 2)]), Graph([0, 1], [(0, 1)])])
    assert within(graphs, 10, {0, 1, 4}) is graphs
    assert within(graphs, 5, {0, 1, 4}).ops.tolist() == [0, 2, 4, 0, 1]
    assert within(graphs, 5, range(5)).ops.tolist() == [0, 4, 4, 0, 1]
