"""Fast scoring equals the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.predictor import Batch, NNFormer, NNFormerConfig
from nas_core.predictor.nn_former import place
from nas_core.predictor.nn_former import scorer as inference_module
from nas_core.predictor.nn_former.naive import naive_prediction
from nas_core.predictor.nn_former.scorer import Scorer, score
from tests.predictor.graphs import random_graphs
from tests.predictor.nn_former.lively import lively

SMALL = {"dim": 32, "depth": 3}


def model_of(**changes: object) -> NNFormer:
    return lively(NNFormerConfig.accuracy(**{**SMALL, **changes}))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sibling_mask": "as_released"},
        {"attention": "global"},
        {"feed_forward": "vanilla"},
        {"position": "nar"},
        {"heads": 8},
        {"depth": 1},
    ],
)
def test_equals_the_model_in_float32(change: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference_module, "CHUNK_TOKENS", 20)
    monkeypatch.setattr(inference_module, "CHUNK_NODES", 20)
    model, graphs = model_of(**change), random_graphs((5, 7, 5, 2, 7, 7, 1, 5))
    with torch.no_grad():
        expected = model(Batch.of(graphs)).double().numpy()
    np.testing.assert_allclose(score(model, graphs, "fp32"), expected, atol=2e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("change", [{}, {"attention": "global"}, {"readout": "logarithm"}, {"layer_scale": 0.0}])
def test_large_graphs_equal_the_model(
    change: dict[str, object], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_module, "CHUNK_NODES", 150)
    config = NNFormerConfig.latency(**{"dim": 32, "depth": 3, "layer_scale": 0.5, **change})
    model, graphs = lively(config), random_graphs((90, 3, 120, 66, 90), features=True, density=0.03)
    scorer = Scorer(model, precision)
    assert scorer.packed is not None and len(list(scorer.blocks(graphs))) == 3
    with torch.no_grad():
        expected = model(Batch.of(graphs)).double().numpy()
    np.testing.assert_allclose(scorer(graphs), expected, rtol=2e-5 if precision == "fp32" else 0.05)


def test_an_accelerator_gets_more_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, networks = random_graphs((5,) * 900 + (7,) * 900), random_graphs((90,) * 50, features=True, density=0.03)
    accuracy, latency = Scorer(model_of(), "fp32"), Scorer(lively(NNFormerConfig.latency(**SMALL)), "fp32")
    parts = [len(list(scorer.blocks(graphs))) for scorer, graphs in ((accuracy, cells), (latency, networks))]
    monkeypatch.setattr(place, "HOSTS", ())
    assert [len(list(scorer.blocks(graphs))) for scorer, graphs in ((accuracy, cells), (latency, networks))] == [2, 1]
    assert parts[0] > 2 and parts[1] > 1


@pytest.mark.parametrize("scale", [30.0, 3000.0])
def test_scores_of_any_size(scale: float) -> None:
    model, graphs = model_of(), random_graphs((5, 7, 5, 2, 7))
    with torch.no_grad():
        for block in model.blocks:
            block.attention.qkv.weight[:32] *= scale
        expected = torch.stack([naive_prediction(model, graph) for graph in graphs]).double().numpy()
    assert expected.std() > 1e-3
    np.testing.assert_allclose(score(model, graphs, "fp32"), expected, atol=2e-4)


def test_bfloat16_is_near() -> None:
    model, graphs = model_of(), random_graphs((7,) * 40)
    exact, fast = score(model, graphs, "fp32"), score(model, graphs, "bf16")
    assert np.abs(fast - exact).max() < 0.1 * exact.std() + 0.02
    assert np.corrcoef(fast, exact)[0, 1] > 0.99


def test_equal_graphs_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, graphs = model_of(), random_graphs((5, 6, 7))
    seen = []
    original = inference_module.Frozen.__call__
    monkeypatch.setattr(
        inference_module.Frozen, "__call__", lambda self, batch: seen.append(len(batch.ops)) or original(self, batch)
    )
    many = score(model, graphs.take([0, 1, 0, 2, 2, 0, 1]), "fp32")
    assert sum(seen) == 3
    np.testing.assert_array_equal(many, score(model, graphs, "fp32")[[0, 1, 0, 2, 2, 0, 1]])


@pytest.mark.parametrize("change", [{}, {"sibling_mask": "as_released"}, {"attention": "global"}])
def test_one_graph_is_predicted_as_among_many(change: dict[str, object]) -> None:
    scorer, graphs = Scorer(model_of(**change), "fp32"), random_graphs((5, 7, 5, 2, 7, 7, 1, 5) * 4)
    alone = np.concatenate([scorer(graphs[i : i + 1]) for i in range(len(graphs))])
    np.testing.assert_allclose(alone, scorer(graphs), atol=1e-5)
