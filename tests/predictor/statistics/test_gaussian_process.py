"""Gaussian process regression."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.predictor.statistics import gaussian_process as module
from nas_core.predictor.statistics.gaussian_process import GaussianProcess


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed).normal(size=(count, 6))
    return values, np.sin(2 * values[:, 0]) + np.cos(values[:, 1])  # four columns say nothing


def test_it_finds_what_matters() -> None:
    values, targets = points(120, 0)
    process = GaussianProcess.fit(values, targets)
    unseen, expected = points(400, 1)
    assert np.corrcoef(process.predict(unseen), expected)[0, 1] > 0.95
    rates = process.rates.numpy()
    assert rates[:2].min() > 2 * rates[2:].max()


def test_points_that_predict_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    values, targets = points(200, 0)
    whole = GaussianProcess.fit(values, targets, seed=3)
    monkeypatch.setattr(module, "MOST", 200)
    at_the_limit = GaussianProcess.fit(values, targets, seed=3)
    assert all(a.equal(b) for a, b in zip(whole.to_tensors().values(), at_the_limit.to_tensors().values(), strict=True))
    monkeypatch.setattr(module, "MOST", 90)
    few, again, other = (GaussianProcess.fit(values, targets, seed) for seed in (3, 3, 4))
    assert few.points.shape == (90, 6) and few.weights.shape == (90,)
    assert few.points.equal(again.points)
    standard = np.clip((values - values.mean(0)) / values.std(0), -5, 5)
    rows = [[int(np.abs(standard - row).sum(1).argmin()) for row in (p.points / p.rates).numpy()] for p in (few, other)]
    assert len(set(rows[0])) == 90 and sorted(rows[0]) != sorted(rows[1]) and max(rows[0]) > 150
    assert np.abs(few.predict(values) - targets).mean() < 0.15


def test_restored_and_constant_columns() -> None:
    values, targets = points(40, 0)
    values[:, 3] = 7.0
    process = GaussianProcess.fit(values, targets)
    again = GaussianProcess.from_tensors(process.to_tensors())
    unseen = points(9, 2)[0]
    np.testing.assert_array_equal(again.predict(unseen), process.predict(unseen))
    moved = unseen.copy()
    moved[:, 3] += 100
    np.testing.assert_allclose(process.predict(moved), process.predict(unseen))
    assert process.predict(unseen[:0]).shape == (0,)


def test_predictions_are_those_of_the_kernel_in_float64() -> None:
    values, targets = points(300, 0)
    process, (unseen, _) = GaussianProcess.fit(values, targets), points(500, 1)
    standard = ((torch.from_numpy(unseen) - process.mean) / process.deviation).clamp(-5, 5) * process.rates
    smooth, linear, _ = process.variances
    apart = (standard[:, None] - process.points).square().sum(-1)
    kernel = smooth * torch.exp(-apart / 2) + linear * standard @ process.points.T
    expected = (kernel @ process.weights).numpy()
    np.testing.assert_allclose(process.predict(unseen), expected, atol=1e-4)
    np.testing.assert_allclose(process.predict(unseen[:3]), expected[:3], atol=1e-4)


def test_the_gradient_of_the_likelihood_is_that_of_autograd() -> None:
    values, targets = (torch.from_numpy(part) for part in points(40, 0))
    logarithms = torch.tensor([-0.5, 0.1, -1.0, 0.3, -0.2, 0.0, 0.2, -1.0, -2.0], dtype=torch.float64)
    logarithms.requires_grad_()
    rates, (smooth, linear, noise) = logarithms[:-3].exp(), logarithms[-3:].exp()
    scaled = values * rates
    apart = (scaled[:, None] - scaled).square().sum(-1)
    itself = torch.eye(40, dtype=torch.float64)
    kernel = smooth * torch.exp(-apart / 2) + linear * scaled @ scaled.T + (noise + module.NOISE) * itself
    (0.5 * targets @ torch.linalg.solve(kernel, targets) + 0.5 * torch.logdet(kernel)).backward()
    found = module._gradient(values, targets, logarithms.detach().exp())  # private: the optimiser hides a wrong one
    torch.testing.assert_close(found, logarithms.grad)
