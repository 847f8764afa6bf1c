"""Milliseconds per node: where they start, what they add up to, and what they are learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor import NNFormerPredictor, get_recipe
from nas_core.predictor.batch import Batch
from nas_core.predictor.config import NNFormerConfig
from nas_core.predictor.costs import costs_by_kind, shrunk_prices
from nas_core.predictor.model import NNFormer
from nas_core.predictor.shares import LARGEST, SHRINKAGE, Shares
from tests.predictor.graphs import random_graphs

SMALL = {"dim": 32, "depth": 2, "epochs": 40, "lr": 5e-3, "batch_size": 4}
SIZES = tuple(range(3, 23)) * 3
NEW = (8, 12, 17, 25, 40)


def without_noise(graphs: Graphs) -> Graphs:
    """Random attributes and shapes tell sixty graphs apart by themselves."""
    return replace(graphs, attributes=np.zeros_like(graphs.attributes), shapes=np.ones_like(graphs.shapes))


def known_ms(graphs: Graphs) -> np.ndarray:
    """A device on which an operation takes .01 ms, and operations of kind 2 compute half as fast."""
    rate = np.where(graphs.ops == 2, 2e-8, 1e-8)
    node = 0.01 + rate * graphs.costs[:, 0] + 2e-9 * graphs.costs[:, 2]  # type: ignore[index]
    return np.add.reduceat(node, np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]]))


def fused_ms(graphs: Graphs) -> np.ndarray:
    """A device that computes an operation twice as fast behind one of kind 3, as runtimes fuse operators."""
    found = []
    for graph in graphs:
        behind = np.zeros(len(graph), bool)
        behind[graph.edges[graph.ops[graph.edges[:, 0]] == 3, 1]] = True
        node = 0.01 + 1e-8 * graph.costs[:, 0] + 2e-9 * graph.costs[:, 2]  # type: ignore[index]
        found.append((node * np.where(behind, 0.5, 1.0)).sum())
    return np.array(found)


def lively() -> NNFormer:
    torch.manual_seed(0)
    model = NNFormer(NNFormerConfig.latency(dim=32, static=0, readout="shares", layer_scale=0.5)).eval()
    return model


def test_training_starts_at_the_prices_of_a_regression() -> None:
    graphs, new = (random_graphs(sizes, seed, features=True) for seed, sizes in enumerate((SIZES, NEW)))
    model = lively()
    model.shares.start(graphs, known_ms(graphs))
    with torch.no_grad():
        first = model(Batch.of(new)).numpy()
    prices = shrunk_prices(costs_by_kind(graphs), known_ms(graphs), SHRINKAGE)[:-1].reshape(3, 32).T
    prices = np.maximum(prices, 0.1 * prices.mean(0))
    for graph, got in zip(new, first, strict=True):
        flops, _, access = graph.costs.astype(float).T  # type: ignore[union-attr]
        used = np.stack([flops + access > 0, flops / 1e9, access / 1e6], 1)
        assert got == pytest.approx(np.maximum((used * prices[graph.ops]).sum(1), 1e-5).sum(), rel=1e-5)
    two, one = prices[2, 1], prices[[0, 1, 3, 4], 1].mean()
    assert two > 1.3 * one  # it computes half as fast


def test_networks_side_by_side_take_the_sum_of_their_times() -> None:
    one, other = random_graphs((9, 14), features=True)
    parts = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("attributes", "shapes")}
    both = Graph(
        np.concatenate([one.ops, other.ops]),
        np.concatenate([one.edges, other.edges + len(one)]),
        costs=np.concatenate([one.costs, other.costs]),  # type: ignore[list-item]
        **parts,
    )
    with torch.no_grad():
        single = lively()(Batch.of(Graphs.of([one, other])))
        joined = lively()(Batch.of(Graphs.of([both])))
    assert bool((single > 0).all())
    assert joined.item() == pytest.approx(single.sum().item(), rel=1e-5)


def test_a_factor_has_limits() -> None:
    shares = Shares(4, 2)
    torch.nn.init.constant_(shares.down.bias, 1e6)
    one = torch.tensor([[[1.0, 0, 0]]])
    got = shares(torch.zeros(1, 1, 4), torch.zeros(1, 1, dtype=torch.long), one).item()
    assert got == pytest.approx(1e-3 * np.exp(LARGEST), rel=1e-4)


def test_it_learns_what_prices_cannot_say(tmp_path: Path) -> None:
    graphs, new = (without_noise(random_graphs(s, seed, features=True)) for seed, s in enumerate((SIZES, NEW)))
    predictor = NNFormerPredictor("network-latency", **SMALL).fit(graphs, fused_ms(graphs))

    def error(predicted: np.ndarray) -> float:
        return float(np.abs(predicted / fused_ms(new) - 1).mean())

    start = NNFormer(predictor.recipe.model).eval()
    start.shares.start(graphs, fused_ms(graphs))
    with torch.no_grad():
        assert error(predictor.predict(new)) < 0.6 * error(start(Batch.of(new)).numpy())
    predictor.save(tmp_path / "model.safetensors")
    again = NNFormerPredictor.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(new), predictor.predict(new))


def test_what_it_cannot_read_or_learn() -> None:
    with pytest.raises(GraphError, match="no costs"):
        NNFormerPredictor("network-latency", **SMALL).fit(random_graphs((3, 4)), [1.0, 2.0])
    graphs = random_graphs((3, 4), features=True)
    predictor = NNFormerPredictor("network-latency", **{**SMALL, "epochs": 1}).fit(graphs, [1.0, 2.0])
    bare = Graphs(graphs.ops, graphs.edges, graphs.sizes, graphs.edge_counts, graphs.attributes, graphs.shapes)
    with pytest.raises(GraphError, match="none costs; this model reads 3"):
        predictor.predict(bare)
    for change in ({"loss": "mse"}, {"targets": "mean"}):
        with pytest.raises(ConfigError, match="expected loss relative or log"):
            get_recipe("network-latency").changed(**change)
    with pytest.raises(ConfigError, match="expected copies=2"):
        get_recipe("network-latency").changed(consistency_weight=0.5)
