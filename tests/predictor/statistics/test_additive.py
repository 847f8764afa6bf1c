"""Ridge regression on what stands where: sums are learned, scales are taken off, files come back."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from nas_core.graph import Graph, Graphs
from nas_core.predictor import NNFormerPredictor, kendall_tau
from nas_core.predictor.statistics.model import Additive
from nas_core.predictor.targets import TargetScale

LAYERS, KINDS = 6, 4


def chains(count: int) -> tuple[Graphs, np.ndarray, np.ndarray]:
    """Chains with positions as attributes, which layers they have, and sums of what layers cost where they stand."""
    stream = np.random.default_rng(0)
    ops, costs = stream.integers(0, KINDS, (count, LAYERS)), stream.lognormal(0, 2, (LAYERS, KINDS))
    links, places = [(i, i + 1) for i in range(LAYERS - 1)], [[float(i)] for i in range(LAYERS)]
    graphs = Graphs.of([Graph(row, links, attributes=places) for row in ops])
    counts = np.eye(KINDS)[ops].reshape(count, -1)
    return graphs, counts, costs[np.arange(LAYERS), ops].sum(1)


def test_sums_are_learned_through_any_scale() -> None:
    _, counts, values = chains(200)
    scale = TargetScale.fitted("normal", values[:80])
    part, left_out = Additive.fit(counts[:80], scale.learn(values[:80]), scale)
    assert np.allclose(scale.restore(part.predict(counts[80:])), values[80:], rtol=0.05, atol=0.5)
    assert kendall_tau(left_out, values[:80]) > 0.95 and left_out.shape == (80,)


def test_graphs_are_left_out_one_by_one() -> None:
    _, counts, values = chains(30)
    noisy = values + np.random.default_rng(1).normal(0, 5, 30)
    part, left_out = Additive.fit(counts, noisy, TargetScale((), ()))
    others = np.arange(30) != 7
    centred = counts - counts.mean(0)
    penalty = float(np.linalg.norm(part.weights.numpy()) > 0) and _penalty_of(centred, noisy, part)
    again = Ridge(alpha=penalty).fit(counts[others], noisy[others])
    assert left_out[7] == pytest.approx(again.predict(counts[7:8])[0], rel=0.05)


def test_a_graph_measured_again_does_not_judge_itself() -> None:
    _, counts, values = chains(30)
    noisy = values + np.random.default_rng(1).normal(0, 5, 30)
    _, once = Additive.fit(counts, noisy, TargetScale((), ()))
    _, often = Additive.fit(np.repeat(counts, 3, 0), np.repeat(noisy, 3), TargetScale((), ()))
    assert np.allclose(often, np.repeat(once, 3))


def _penalty_of(centred: np.ndarray, values: np.ndarray, part: Additive) -> float:
    """The penalty that weights satisfy: X'(y - Xw) = penalty w."""
    weights = part.weights.numpy()
    pull = centred.T @ (values - values.mean() - centred @ weights)
    return float(pull @ weights / (weights @ weights))


def test_a_mixture_has_the_part_where_positions_are_attributes() -> None:
    graphs, _, values = chains(160)
    fitted = NNFormerPredictor("statistics", processes=1, trees=1).fit(graphs[:80], values[:80])
    parts = fitted.predict_parts(graphs[80:])
    assert list(parts) == ["processes", "trees", "additive"] and kendall_tau(parts["additive"], values[80:]) > 0.95
    assert kendall_tau(fitted.predict(graphs[80:]), values[80:]) > 0.9
    alone = NNFormerPredictor("statistics", processes=1, trees=0).fit(graphs[:80], values[:80])
    assert list(alone.predict_parts(graphs[80:])) == ["processes"]


def test_it_comes_back_from_its_tensors() -> None:
    _, counts, values = chains(40)
    part, _ = Additive.fit(counts, values, TargetScale.fitted("mean", values))
    tensors = part.to_tensors()
    assert np.array_equal(Additive.from_tensors(tensors).predict(counts), part.predict(counts))
