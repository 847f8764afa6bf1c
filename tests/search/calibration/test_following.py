"""Which networks to train next: the expected gain, and choices that do not repeat each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from nas_core.predictor import expected_improvement
from nas_core.search.calibration.acquisition import expected_gain, next_to_train
from nas_core.search.calibration.model import Calibration, calibrated_metrics, objective_of
from nas_core.search.limits import costs_on_paper
from tests.search.calibration.toy_tasks import SPACE, drawn, inherited_loss, standalone

PARAMS = costs_on_paper(SPACE)["params_m"]


def test_the_expected_gain_is_that_of_drawn_qualities() -> None:
    """Volume above the known front, up to the largest cost and a tenth of the range more, counted by drawing."""
    drawn_evenly = ndtri((np.arange(4000) + 0.5) / 4000)
    front = np.array([[1.0, 3.0], [2.0, 5.0], [3.0, 4.0]])
    mean, spread, costs = np.array([4.0, 4.5, 3.0]), np.array([1.0, 0.5, 2.0]), np.array([0.5, 1.5, 4.0])
    reach = np.linspace(0.5, 4 + 0.1 * 3.5, 2001)
    best = np.array([max([3.0, *front[front[:, 0] <= cost, 1]]) for cost in reach])
    gained = []
    for m, s, c in zip(mean, spread, costs, strict=True):
        above = np.maximum((m + s * drawn_evenly)[:, None] - best, 0) * (reach >= c)
        gained.append(float(np.trapezoid(above.mean(0), reach)))
    assert expected_gain(mean, spread, costs, front) == pytest.approx(np.array(gained), rel=0.03)


def test_without_a_cost_it_is_expected_improvement() -> None:
    mean, spread = np.array([1.0, 2.0]), np.array([0.5, 0.1])
    result = expected_gain(mean, spread, np.zeros(2), np.array([[0.0, 1.5], [0.0, 1.2]]))
    assert result == pytest.approx(expected_improvement(mean, spread, 1.5))


def test_what_is_trained_next_is_not_known_and_not_twice_the_same() -> None:
    architectures, candidates = drawn(6), drawn(60, seed=4)
    calibration = Calibration(SPACE, "test_bleu").fit(
        architectures, inherited_loss(architectures), standalone(architectures)
    )
    losses = inherited_loss(candidates)
    evaluated = {
        one: {**calibrated_metrics(calibration, one, [{"loss": loss}]), "params_m": PARAMS(one)}
        for one, loss in zip(candidates, losses.tolist(), strict=True)
    }
    evaluated |= {one: {"calibrated_test_bleu": 1e3, "calibrated_test_bleu_spread": 1.0} for one in architectures}
    chosen = next_to_train(calibration, evaluated, "params_m", {one: PARAMS(one) for one in architectures}, 4)
    networks = [one.architecture for one in chosen]
    assert len(set(networks)) == 4 and not set(networks) & set(architectures)
    assert all(one.gain is not None and one.gain > 0 for one in chosen)
    costs = [one.metrics["params_m"] for one in chosen]
    assert np.ptp(costs) > 0.1 * np.ptp(
        [metrics["params_m"] for one, metrics in evaluated.items() if one not in architectures]
    )
    best = next_to_train(calibration, evaluated, None, None, 1)[0]
    assert best.metrics["calibrated_test_bleu"] > np.median(standalone(candidates))


def test_the_objective_is_smaller_for_better_networks() -> None:
    architectures = drawn(5)
    up = Calibration(SPACE, "test_bleu").fit(architectures, inherited_loss(architectures), standalone(architectures))
    metrics = calibrated_metrics(up, architectures[0], [{"loss": 3.0}])
    assert objective_of(up) == "-calibrated_test_bleu" and metrics[objective_of(up)] == -metrics["calibrated_test_bleu"]
    none = Calibration(SPACE, "test_bleu")
    assert calibrated_metrics(none, architectures[0], [{"loss": 3.0}]) == {"calibrated_loss": 3.0}
    assert calibrated_metrics(up, architectures[0], [{"loss": float("nan")}]) == {}
