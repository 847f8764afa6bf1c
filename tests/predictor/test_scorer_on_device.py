"""Fast scoring equals the model: any settings, precision, number of graphs, and thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, NNFormerConfig
from nas_core.predictor.nn_former import scorer as module
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.frozen import Product
from nas_core.predictor.nn_former.scorer import Scorer
from tests.devices import close_in
from tests.predictor.accelerated import as_accelerator  # noqa: F401 - a fixture
from tests.predictor.graphs import lively, random_graphs

MIXED = random_graphs((5, 7, 5, 2, 7, 7, 1, 5))
MANY = random_graphs((7,) * 700 + (5,) * 30)


def model_of(**changes: object) -> NNFormer:
    return lively(NNFormerConfig(**{"dim": 32, "depth": 3, **changes}))


@torch.no_grad()
def expected_of(model: NNFormer, graphs: Graphs) -> np.ndarray:
    return model(Batch.of(graphs)).double().numpy()


CHANGES = [
    {},
    {"sibling_mask": "as_released"},
    {"heads": 8},
    {"depth": 1},
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_frozen_model_equals_the_model(change: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_TOKENS", 20)
    monkeypatch.setattr(module, "CHUNK_NODES", 20)
    model = model_of(**change)
    scorer = Scorer(model, "fp32")
    scores = scorer(MIXED)
    np.testing.assert_allclose(scores, expected_of(model, MIXED), atol=2e-5)
    alone = np.concatenate([scorer(MIXED[i : i + 1]) for i in range(len(MIXED))])
    np.testing.assert_allclose(alone, scores, atol=1e-5)
    repeated = scorer(MIXED.take([0, 1, 0, 2, 2, 0, 1]))
    assert len(set(repeated.tolist())) == 3 and repeated[0] == repeated[2] == repeated[5]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("change", [{}, {"readout": "logarithm"}, {"layer_scale": 0.0}])
def test_large_graphs_equal_the_model(
    change: dict[str, object], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_NODES", 150)
    config = NNFormerConfig.latency(**{"dim": 32, "depth": 3, "layer_scale": 0.5, **change})
    model, graphs = lively(config), random_graphs((90, 3, 120, 66, 90), features=True, density=0.03)
    scorer = Scorer(model, precision)
    assert scorer.packed is not None and len(list(scorer.blocks(graphs))) == 3
    allowed = 2e-5 if precision == "fp32" else 0.05
    np.testing.assert_allclose(scorer(graphs), expected_of(model, graphs), rtol=allowed)


@pytest.mark.parametrize("scale", [30.0, 3000.0])
def test_attention_scores_of_any_size(scale: float) -> None:
    model = model_of()
    with torch.no_grad():
        for block in model.blocks:
            block.attention.qkv.weight[:32] *= scale
    expected = expected_of(model, MIXED)
    assert expected.std() > 1e-3
    np.testing.assert_allclose(Scorer(model, "fp32")(MIXED), expected, atol=2e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 130])
@torch.inference_mode()
def test_products_equal_torchs(dtype: torch.dtype, rows: int) -> None:
    torch.manual_seed(0)
    weight = torch.randn(24, 40)
    product, limit = Product(weight, dtype), 1e-5 if dtype == torch.float32 else 0.1
    x, other = torch.randn(rows, 40).to(dtype), torch.randn(rows, 24).to(dtype)
    plain = x.float() @ weight.to(dtype).float().T
    outputs = [(product(x), plain), (product(x, relu=True), plain.relu()), (product.add(x, other), plain + other)]
    for output, expected in outputs:
        torch.testing.assert_close(output, expected.to(dtype), atol=limit, rtol=limit)


@pytest.mark.parametrize("change", CHANGES[:3])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.usefixtures("as_accelerator")
def test_every_precision(device: str, precision: str, change: dict[str, str]) -> None:
    expected, scorer = expected_of(model_of(**change), MANY), Scorer(model_of(**change).to(device), precision)
    scores = scorer(MANY)
    close_in(precision, torch.from_numpy(scores), torch.from_numpy(expected), times=20)
    np.testing.assert_array_equal(scorer(MANY), scores)


def test_threads_do_not_mix(device: str) -> None:
    expected, scorer = expected_of(model_of(), MANY), Scorer(model_of().to(device), "fp32")
    parts = [np.arange(start, start + 25) for start in range(0, 700, 25)]
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda rows: scorer(MANY.take(rows)), parts * 3))
    np.testing.assert_allclose(np.concatenate(scores), np.tile(expected[:700], 3), atol=1e-4)


def test_models_of_two_devices_in_turns(second_device: str) -> None:
    models = [model_of(), model_of()]
    with torch.no_grad():
        models[1].head.bias.add_(3.0)
    expected = [expected_of(model, MANY) for model in models]
    places = ("cuda:0" if second_device.startswith("cuda") else "cpu", second_device)
    scorers = [Scorer(model.to(place), "fp32") for model, place in zip(models, places, strict=True)]
    for start in range(0, 700, 100):
        for scorer, reference in zip(scorers, expected, strict=True):
            part = slice(start, start + 100)
            np.testing.assert_allclose(scorer(MANY[part]), reference[part], atol=1e-4)


def test_a_scorer_keeps_the_weights_it_was_made_with(device: str) -> None:
    model = model_of().to(device)
    scorer = Scorer(model, "fp32")
    before = scorer(MIXED)
    with torch.no_grad():
        model.blocks[0].attention.qkv.weight.zero_()
    np.testing.assert_array_equal(scorer(MIXED), before)
    assert np.abs(Scorer(model, "fp32")(MIXED) - before).max() > 1e-4
