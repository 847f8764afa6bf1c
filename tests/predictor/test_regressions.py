"""Gaussian process, boosted trees and additive model, and the statistics model of all three."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from nas_core.graph import Graph, Graphs
from nas_core.graph.nasbench201 import nasbench201_graphs
from nas_core.predictor import StatisticsPredictor, kendall_tau
from nas_core.predictor.statistics import model as model_module
from nas_core.predictor.statistics import regressions as module
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import FEATURES
from nas_core.predictor.statistics.regressions import Additive, GaussianProcess, ridge_path, tensors_of
from nas_core.predictor.targets import IDENTITY, TargetScale
from tests.predictor.graphs import random_graphs

LAYERS, KINDS = 6, 4
CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (60, 6)))
GOOD = np.array([float((graph.ops == 2).sum() - (graph.ops == 3).sum()) for graph in CELLS])


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed).normal(size=(count, 6))
    return values, np.sin(2 * values[:, 0]) + np.cos(values[:, 1])  # four columns are noise


def test_a_process_finds_what_matters() -> None:
    process = GaussianProcess.fit(*points(120, 0))
    unseen, expected = points(400, 1)
    assert np.corrcoef(process.predict(unseen), expected)[0, 1] > 0.95
    rates = process.rates.numpy()
    assert rates[:2].min() > 2 * rates[2:].max()


def test_predictions_are_those_of_the_kernel_in_float64() -> None:
    process, (unseen, _) = GaussianProcess.fit(*points(300, 0)), points(500, 1)
    standard = ((torch.from_numpy(unseen) - process.mean) / process.deviation).clamp(-5, 5) * process.rates
    smooth, linear, _ = process.variances
    squares = (standard[:, None] - process.points).square().sum(-1)
    kernel = smooth * torch.exp(-squares / 2) + linear * standard @ process.points.T
    expected = (kernel @ process.weights).numpy()
    np.testing.assert_allclose(process.predict(unseen), expected, atol=1e-4)
    np.testing.assert_allclose(process.predict(unseen[:3]), expected[:3], atol=1e-4)


def test_the_gradient_of_the_likelihood_is_that_of_autograd() -> None:
    values, targets = (torch.from_numpy(part) for part in points(40, 0))
    logarithms = torch.tensor([-0.5, 0.1, -1.0, 0.3, -0.2, 0.0, 0.2, -1.0, -2.0], dtype=torch.float64)
    logarithms.requires_grad_()
    rates, (smooth, linear, noise) = logarithms[:-3].exp(), logarithms[-3:].exp()
    scaled = values * rates
    squares = (scaled[:, None] - scaled).square().sum(-1)
    kernel = smooth * torch.exp(-squares / 2) + linear * scaled @ scaled.T
    kernel = kernel + (noise + module.NOISE) * torch.eye(40, dtype=torch.float64)
    (0.5 * targets @ torch.linalg.solve(kernel, targets) + 0.5 * torch.logdet(kernel)).backward()
    gradient = module._gradient(values, targets, logarithms.detach().exp())  # the optimiser hides a wrong one
    torch.testing.assert_close(gradient, logarithms.grad)


def chains(count: int) -> tuple[Graphs, np.ndarray, np.ndarray]:
    """Chains with places as attributes, their layers one-hot, and sums of costs of each layer in its place."""
    stream = np.random.default_rng(0)
    ops, costs = stream.integers(0, KINDS, (count, LAYERS)), stream.lognormal(0, 2, (LAYERS, KINDS))
    links, places = [(i, i + 1) for i in range(LAYERS - 1)], [[float(i)] for i in range(LAYERS)]
    graphs = Graphs.of([Graph(row, links, attributes=places) for row in ops])
    return graphs, np.eye(KINDS)[ops].reshape(count, -1), costs[np.arange(LAYERS), ops].sum(1)


def test_sums_are_learned_through_any_scale() -> None:
    _, counts, values = chains(200)
    scale = TargetScale.fit("normal", values[:80])
    part, left_out = Additive.fit(counts[:80], scale.transform(values[:80]), scale)
    assert np.allclose(scale.inverse_transform(part.predict(counts[80:])), values[80:], rtol=0.05, atol=0.5)
    assert kendall_tau(left_out, values[:80]) > 0.95 and left_out.shape == (80,)
    repeated = Additive(**tensors_of(part))
    np.testing.assert_array_equal(repeated.predict(counts), part.predict(counts))


def statistics(graphs: Graphs, values: np.ndarray, processes: int, trees: int) -> StatisticsModel:
    """Fit the model without folds."""
    return StatisticsModel.fit(graphs, values, processes, trees, 0, np.zeros(0, np.int64))[0]


def test_graphs_are_left_out_one_by_one_with_their_equals() -> None:
    _, counts, values = chains(30)
    noisy = values + np.random.default_rng(1).normal(0, 5, 30)
    others, squares = np.arange(30) != 7, values**-2.0
    weights, offsets, path, _ = ridge_path(counts, noisy, squares)
    centred = (counts - squares @ counts / squares.sum()) * squares[:, None]
    for i in (20, 26, 32):
        pull = centred.T @ (noisy - offsets[i] - counts @ weights[i])  # X'W(y - Xw) = penalty w
        alpha = float(pull @ weights[i] / (weights[i] @ weights[i]))
        again = Ridge(alpha=alpha).fit(counts[others], noisy[others], squares[others])
        assert path[i, 7] == pytest.approx(again.predict(counts[7:8])[0], rel=1e-6)
    _, left_out = Additive.fit(counts, noisy, IDENTITY)
    _, repeated = Additive.fit(np.repeat(counts, 3, 0), np.repeat(noisy, 3), IDENTITY)
    assert np.allclose(repeated, np.repeat(left_out, 3))


def test_a_mixture_has_an_additive_part_where_places_are_attributes() -> None:
    graphs, _, values = chains(160)
    fitted = StatisticsPredictor(processes=1, trees=1).fit(graphs[:80], values[:80])
    parts = fitted.predict_components(graphs[80:])
    assert list(parts) == ["processes", "trees", "additive"] and kendall_tau(parts["additive"], values[80:]) > 0.95
    assert kendall_tau(fitted.predict(graphs[80:]), values[80:]) > 0.9


def test_parts_of_described_graphs() -> None:
    model = statistics(CELLS, GOOD, 4, 2)
    assert model.components == ("described processes", "processes", "trees")
    rows = model.predict(CELLS)
    assert rows.shape == (3, 60) and all(np.corrcoef(row, GOOD)[0, 1] > 0.9 for row in rows)
    first, last = model.columns[0].numpy(), model.columns[-1].numpy()
    assert first.max() < len(FEATURES) <= last.max()
    bare = replace(CELLS, operations=None)
    assert statistics(bare, GOOD, 2, 1).components == ("processes", "trees")


def test_predictions_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(tuple([4, 5, 6, 7] * 15))
    expected = np.array([float((graph.ops == 1).sum()) + 0.1 * len(graph.ops) for graph in graphs])
    model = statistics(graphs, expected, 2, 3)
    rows = model.predict(graphs)
    assert rows.shape == (2, 60) and all(kendall_tau(row, expected) > 0.7 for row in rows)
    monkeypatch.setattr(model_module, "CHUNK", 7)
    np.testing.assert_allclose(model.predict(graphs), rows)
    monkeypatch.setattr(model_module, "FEW", 0)  # each boosted model is computed
    np.testing.assert_allclose(model.predict(graphs), rows)


def test_only_kinds_of_the_training_graphs_count_where_indices_are_large() -> None:
    def renamed(graphs: Graphs, names: list[int]) -> Graphs:
        return replace(graphs, ops=np.array(names)[graphs.ops].astype(np.int16))

    indices = [3, 200, 7000, 9, 31_000]
    graphs = renamed(random_graphs(tuple([4, 5, 6, 7] * 8)), indices)
    expected = np.array([float((graph.ops == 200).sum()) for graph in graphs])
    model = statistics(graphs, expected, 2, 2)
    assert model.description.vocabulary.kinds.tolist() == sorted(indices) and len(model.processes[0].mean) < 400
    unknown = [renamed(random_graphs((7,) * 9), [*indices[:4], last]) for last in (4, 8000, 32_000)]
    first, *more = (model.predict(graphs) for graphs in unknown)
    assert all(np.array_equal(first, rows) for rows in more) and np.isfinite(first).all()
    reloaded = StatisticsModel.from_tensors(model.to_tensors(), 2, 2)
    np.testing.assert_array_equal(reloaded.predict(graphs), model.predict(graphs))
