"""NN-Former against its reference written from the equations, and what must hold for any graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.parts.plain_nnformer import codes_of, plain_forward
from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, NNFormerConfig
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.packed import PackedBatch
from tests.predictor.graphs import lively, random_graphs

SMALL = {"dim": 32, "depth": 3}
CASES = {
    "accuracy, paper": NNFormerConfig(**SMALL),
    "accuracy, as released": NNFormerConfig(sibling_mask="as_released", **SMALL),
    "latency": NNFormerConfig.latency(layer_scale=0.5, **SMALL),
    "accuracy with features": NNFormerConfig(attributes=8, shapes=4, static=4, **SMALL),
}
MIXED = (1, 7, 2, 5, 12, 7, 3)


def graphs_for(config: NNFormerConfig, sizes: tuple[int, ...] = MIXED, **more: float) -> Graphs:
    return random_graphs(sizes, features=config.attributes > 0, **more)  # type: ignore[arg-type]


def test_sizes_of_the_published_models() -> None:
    counts = [sum(p.numel() for p in NNFormer(c).parameters()) for c in (NNFormerConfig(), NNFormerConfig.latency())]
    assert counts == [4_934_081, 10_104_321]


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_equal_the_reference(name: str) -> None:
    config = CASES[name]
    model, graphs = lively(config), Graphs.of([*graphs_for(config), *graphs_for(config, (4, 6), density=0.0)])
    weighting = torch.linspace(-1, 2, len(graphs))
    predicted = model(Batch.of(graphs))
    (predicted * weighting).sum().backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    expected = torch.cat([plain_forward(model, codes_of(model, graphs[i : i + 1])) for i in range(len(graphs))])
    (expected * weighting).sum().backward()
    torch.testing.assert_close(predicted, expected, atol=2e-5, rtol=2e-5)
    assert predicted.std() > 1e-3, "a constant model would prove nothing"
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        scale = float(parameter.grad.abs().max()) + 1e-6
        torch.testing.assert_close(gradients[parameter_name], parameter.grad, atol=1e-4 * scale, rtol=1e-3)


def test_padding_is_ignored() -> None:
    config = CASES["accuracy, paper"]
    model, graphs = lively(config), graphs_for(config)
    together = model(Batch.of(graphs))
    alone = torch.cat([model(Batch.of(graphs[i : i + 1])) for i in range(len(graphs))])
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("readout", ["sum", "logarithm"])
def test_packed_graphs_equal_padded_ones(readout: str) -> None:
    config = replace(CASES["latency"], readout=readout)
    model, graphs = lively(config), random_graphs((40, 1, 75, 23), 1, features=True, density=0.05)
    dense = model(Batch.of(graphs))
    dense.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]  # type: ignore[union-attr]
    model.zero_grad()
    packed = model(PackedBatch.of(graphs))
    packed.sum().backward()
    torch.testing.assert_close(packed, dense, atol=1e-5, rtol=1e-5)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5 * float(gradient.abs().max()) + 1e-7, rtol=1e-3)


def test_scale_of_the_training_networks() -> None:
    graphs = random_graphs(tuple(range(3, 13)) * 4, features=True)
    latency = np.exp(np.linspace(-2, 4, len(graphs)))
    model = NNFormer(NNFormerConfig.latency(dim=32, readout="logarithm")).eval()
    model.logarithm.set_scale(graphs, torch.from_numpy(latency))
    torch.nn.init.zeros_(model.logarithm.head.weight)
    with torch.no_grad():
        np.testing.assert_allclose(model(Batch.of(graphs)), np.exp(np.log(latency).mean()), rtol=1e-5)
        torch.nn.init.ones_(model.logarithm.head.bias)
        assert model(Batch.of(graphs))[0].item() == pytest.approx(np.exp(1 + np.log(latency).std(ddof=1)), rel=1e-5)
