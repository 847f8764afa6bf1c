"""NN-Former and GraphSAGE as one latency model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, GraphError
from nas_core.latency import parsed_model_settings
from nas_core.latency.by_graph import EnsembleModel, GraphSageModel, NNFormerModel
from nas_core.predictor import NNFormerPredictor
from tests.latency.by_graph.toy import toy_networks


@pytest.fixture(scope="module")
def fitted() -> EnsembleModel:
    return EnsembleModel(epochs=3).fit(toy_networks(30), seed=2)


def test_the_geometric_mean_of_models_trained_alone(fitted: EnsembleModel) -> None:
    data = toy_networks(40)
    alone = [
        cls(epochs=3).fit(toy_networks(30), seed=2).predict(data.graphs) for cls in (NNFormerModel, GraphSageModel)
    ]
    predicted, spread = fitted.predict_with_spread(data.graphs)
    assert predicted == pytest.approx(np.sqrt(alone[0] * alone[1]))
    disagreement = abs(np.log(alone[0] / alone[1])) / np.sqrt(2)
    assert spread == pytest.approx(predicted * np.hypot(fitted.relative_spread, disagreement))


def test_settings_are_those_of_each_member(fitted: EnsembleModel) -> None:
    assert parsed_model_settings("ensemble", ["epochs=3"]) == {"epochs": 3}
    assert fitted.described()["members"]["graphsage"]["epochs"] == 3
    assert fitted.described()["members"]["nn-former"]["train"]["epochs"] == 3
    own = EnsembleModel().described()["members"]
    assert own == {"nn-former": NNFormerModel().described(), "graphsage": GraphSageModel().described()}
    with pytest.raises(ConfigError, match="epochs"):
        EnsembleModel(epochs=-1)


def test_a_fit_that_is_interrupted_changes_nothing() -> None:
    data = toy_networks(30)
    model = EnsembleModel(epochs=1).fit(data)
    before = model.predict_with_spread(data.graphs)
    calls: list[int] = []

    def stopped(step: int, steps: int, loss: float) -> None:
        calls.append(step)
        if calls.count(1) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(replace(data, latency_ms=100 * data.latency_ms), progress=stopped)
    assert [x.tolist() for x in model.predict_with_spread(data.graphs)] == [x.tolist() for x in before]


def test_graphs_that_a_member_cannot_read(fitted: EnsembleModel) -> None:
    graph = toy_networks(30).graphs[0]
    assert graph.attributes is not None
    narrow = Graph(
        graph.ops,
        graph.edges,
        attributes=graph.attributes[:, :5],
        shapes=graph.shapes,
        costs=graph.costs,
        static=graph.static,
    )
    with pytest.raises(GraphError, match="5 attributes"):
        fitted.predict([narrow])


def test_it_is_no_predictor_by_itself(fitted: EnsembleModel, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    fitted.save(path)
    with pytest.raises(DataError, match="not a predictor by itself; use it with 'nas-ext latency predict'"):
        NNFormerPredictor.load(path)
