"""The readout in logarithms: its scale and what it learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.graph import FEATURES, Graphs
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.nn_former.batch import Batch
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.model import LogReadout, NNFormer, scale_of, standardised
from tests.predictor.graphs import random_graphs

SMALL = {"dim": 16, "depth": 1, "epochs": 120, "lr": 3e-3, "batch_size": 8}
SIZES = tuple(range(3, 13)) * 4
NEW = (8, 12, 7, 11, 5, 6)


def networks(sizes: tuple[int, ...], seed: int) -> Graphs:
    """Random features would tell sixty graphs apart by themselves."""
    graphs = random_graphs(sizes, seed, features=True)
    same = {name: np.ones_like(getattr(graphs, name)) for name in FEATURES}
    return replace(graphs, **same)


def known_ms(graphs: Graphs) -> np.ndarray:
    """A device that computes an operation in 1 ms, and one of kind 2 in 10 ms."""
    starts = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
    return np.add.reduceat(np.where(graphs.ops == 2, 10.0, 1.0), starts)


def test_scale_of_the_training_networks() -> None:
    graphs = random_graphs(SIZES, features=True)
    latency = np.exp(np.linspace(-2, 4, len(graphs)))
    model = NNFormer(NNFormerConfig.latency(dim=32, readout="logarithm")).eval()
    model.logarithm.set_scale(graphs, torch.from_numpy(latency))
    torch.nn.init.zeros_(model.logarithm.head.weight)
    with torch.no_grad():
        np.testing.assert_allclose(model(Batch.of(graphs)), np.exp(np.log(latency).mean()), rtol=1e-5)
        torch.nn.init.ones_(model.logarithm.head.bias)
        assert model(Batch.of(graphs))[0].item() == pytest.approx(np.exp(1 + np.log(latency).std(ddof=1)), rel=1e-5)


def test_what_all_training_networks_share_is_ignored() -> None:
    readout = LogReadout(8, 2).eval()
    values = torch.stack([torch.zeros(50), torch.linspace(-1, 1, 50), torch.linspace(0, 3, 50)])
    readout.scale.copy_(scale_of(values))
    total, ones, fours = 10 * torch.rand(3, 16), torch.ones(3, 2), torch.tensor([[4.0, 1.0]] * 3)
    assert torch.equal(readout(total, ones), readout(total, fours))
    assert not torch.equal(readout(total, ones), readout(total, fours.flip(1)))
    scaled = standardised(torch.tensor([[7.0, 0.0, 1.5]]), readout.scale)
    torch.testing.assert_close(scaled, torch.zeros(1, 3))


def test_it_learns_what_operations_cost(tmp_path: Path) -> None:
    graphs, new = networks(SIZES, 0), networks(NEW, 1)
    predictor = NNFormerPredictor("network-latency", **SMALL).fit(graphs, known_ms(graphs))
    predicted = predictor.predict(new)
    counted = new.sizes * (known_ms(graphs) / graphs.sizes).mean()
    errors = [float(np.abs(x / known_ms(new) - 1).mean()) for x in (predicted, counted)]
    assert errors[0] < 0.5 * errors[1]
    predictor.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(NNFormerPredictor.load(tmp_path / "model.safetensors").predict(new), predicted)
