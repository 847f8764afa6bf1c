"""Fast scoring against the model and its naive twin."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from nas_core.predictor import NNFormer, NNFormerConfig
from nas_core.predictor.nn_former import scorer as inference_module
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.naive import naive_prediction
from nas_core.predictor.nn_former.scorer import Frozen, Product, Scorer, StaticForward, score
from tests.predictor.accelerated import as_accelerator  # noqa: F401 - a fixture
from tests.predictor.graphs import lively, random_graphs

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


@pytest.mark.parametrize("change", [{}, {"sibling_mask": "as_released"}, {"attention": "global"}])
def test_one_graph_is_predicted_as_among_many(change: dict[str, object]) -> None:
    scorer, graphs = Scorer(model_of(**change), "fp32"), random_graphs((5, 7, 5, 2, 7, 7, 1, 5) * 4)
    alone = np.concatenate([scorer(graphs[i : i + 1]) for i in range(len(graphs))])
    np.testing.assert_allclose(alone, scorer(graphs), atol=1e-5)


def test_equal_graphs_have_equal_scores() -> None:
    model, graphs = model_of(), random_graphs((5, 6, 7))
    order = [0, 1, 0, 2, 2, 0, 1]
    np.testing.assert_array_equal(score(model, graphs.take(order), "fp32"), score(model, graphs, "fp32")[order])


@pytest.mark.parametrize("change", [{}, {"feed_forward": "vanilla"}, {"sibling_mask": "as_released"}])
@torch.inference_mode()
def test_padded_passes_with_dense_sums_equal_lists(change: dict[str, object]) -> None:
    frozen, graphs = Frozen(model_of(**change), torch.float32), random_graphs((7,) * 12)
    expected = frozen(Batch.of(graphs))
    assert expected.std() > 1e-3
    static = StaticForward(frozen.dense, 8, 7, torch.device("cpu"))
    parts = [static(Batch.of(graphs, rows)) for rows in (np.arange(8), np.arange(8, 12))]
    torch.testing.assert_close(torch.cat(parts), expected, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("as_accelerator")
@torch.inference_mode()
def test_a_recording_is_freed_with_its_scorer() -> None:
    """At once: the collector could free it during another recording, which would end that one."""
    scorer, graphs = Scorer(model_of(), "fp32"), random_graphs((7,) * 5)
    assert scorer(graphs).shape == (5,) and scorer.frozen is not None
    alive = weakref.ref(scorer.frozen)
    gc.disable()
    try:
        del scorer
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 130])
@torch.inference_mode()
def test_products_equal_torchs(dtype: torch.dtype, rows: int) -> None:
    torch.manual_seed(0)
    weight = torch.randn(24, 40)
    product, limit = Product(weight, dtype), 1e-5 if dtype == torch.float32 else 0.1
    x, other = torch.randn(rows, 40).to(dtype), torch.randn(rows, 24).to(dtype)
    expected = x.float() @ weight.to(dtype).float().T
    outputs = {
        product(x): expected,
        product.relu(x): expected.relu(),
        product.added(x, other): expected + other.float(),
    }
    for output, wanted in outputs.items():
        assert output.dtype == dtype
        torch.testing.assert_close(output.float(), wanted, atol=limit, rtol=limit)
