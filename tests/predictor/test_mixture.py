"""Shares and standard deviations from out-of-fold predictions."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.predictor.mixture import FOLDS, Mixture, fold_of
from nas_core.predictor.targets import TargetScale
from tests.predictor.graphs import random_graphs

SAME = TargetScale((), ())
EVEN = (0.5, 0.5)


def parts(errors: tuple[float, ...], graphs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of parts with these errors, and the truth."""
    stream = np.random.default_rng(seed)
    truth = stream.normal(size=graphs)
    return truth + np.array(errors)[:, None] * stream.normal(size=(len(errors), graphs)), truth


def fitted(errors: tuple[float, ...], graphs: int, prior: tuple[float, ...] = EVEN) -> Mixture:
    predictions, truth = parts(errors, graphs)
    return Mixture.fit(predictions, truth, truth, SAME, prior)


def test_shares_are_those_of_least_error() -> None:
    shares = fitted((0.2, 0.4), 4000).shares
    assert shares[0] == pytest.approx(0.8, abs=0.03) and sum(shares) == pytest.approx(1)  # inverse variances
    assert fitted((0.1, 5.0), 4000).shares[0] > 0.98


def test_with_few_graphs_shares_stay_near_the_prior() -> None:
    few, many = (abs(fitted((0.2, 0.4), graphs, (0.1, 0.9)).shares[0] - 0.1) for graphs in (3, 3000))
    assert few < 0.5 * many
    assert fitted((0.3,), 20, (1.0,)).shares == (1.0,)


@pytest.mark.parametrize("errors", [(0.3, 0.3), (0.1, 0.8), (1.0, 0.2)])
def test_as_many_lie_within_one_and_two_deviations_as_should(errors: tuple[float, float]) -> None:
    mixture = fitted(errors, 300)
    predictions, truth = parts(errors, 4000, seed=1)
    predicted, deviation = mixture.combine(predictions, SAME)
    off = np.abs(truth - predicted) / deviation
    assert np.mean(off <= 1) == pytest.approx(0.68, abs=0.06) and np.mean(off <= 2) == pytest.approx(0.95, abs=0.03)


def test_where_parts_disagree_the_spread_is_wider() -> None:
    """Half of the graphs are easy: there all parts are right."""
    stream = np.random.default_rng(0)
    truth, hard = stream.normal(size=600), np.arange(600) % 2
    predictions = truth + (0.02 + hard) * stream.normal(size=(2, 600))
    mixture = Mixture.fit(predictions, truth, truth, SAME, EVEN)
    _, deviation = mixture.combine(np.array([[0.0, 0.0], [0.01, 2.0]]), SAME)
    assert deviation[1] > 4 * deviation[0]


def test_equal_graphs_are_in_one_fold() -> None:
    graphs = random_graphs((5, 6, 7) * 30)
    twice = graphs.take(np.concatenate([np.arange(90), np.arange(90)]))
    fold = fold_of(twice, 0)
    np.testing.assert_array_equal(fold[:90], fold[90:])
    assert sorted(set(fold.tolist())) == list(range(FOLDS)) and np.bincount(fold).min() >= 24
    assert not np.array_equal(fold, fold_of(twice, 1)) and fold_of(graphs[:3], 0).max() == 2
