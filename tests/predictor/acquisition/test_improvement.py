"""Expected improvement against its integral, and its logarithm where the number itself is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from nas_core.errors import ConfigError
from nas_core.predictor import expected_improvement, log_expected_improvement


@pytest.mark.parametrize(("mean", "spread", "best"), [(0.9, 0.02, 0.93), (0.95, 0.01, 0.93), (0.93, 0.5, 0.93)])
def test_it_is_the_mean_of_what_is_better(mean: float, spread: float, best: float) -> None:
    density = norm(mean, spread).pdf
    larger = quad(lambda y: (y - best) * density(y), best, best + 12 * spread, epsabs=1e-14)[0]
    smaller = quad(lambda y: (best - y) * density(y), best - 12 * spread, best, epsabs=1e-14)[0]
    np.testing.assert_allclose(expected_improvement([mean], [spread], best), [larger], rtol=1e-6)
    np.testing.assert_allclose(expected_improvement([mean], [spread], best, maximize=False), [smaller], rtol=1e-6)


def test_what_is_sure_improves_by_its_mean() -> None:
    found = expected_improvement([0.9, 0.95], [0.0, 0.0], 0.92)
    np.testing.assert_allclose(found, [0.0, 0.03])
    np.testing.assert_allclose(log_expected_improvement([0.95], [0.0], 0.92), np.log([0.03]))
    assert log_expected_improvement([0.9], [0.0], 0.92)[0] == -np.inf
    assert expected_improvement([], [], 0.9).shape == (0,)


def test_the_logarithm_goes_on_where_the_number_ends() -> None:
    z = np.array([3.0, 0.0, -0.99, -1.01, -5.0, -20.0])
    np.testing.assert_allclose(
        log_expected_improvement(z, np.ones(6), 0.0), np.log(expected_improvement(z, np.ones(6), 0.0)), rtol=1e-6
    )
    far = -np.array([30.0, 999.0, 1001.0, 1e5, 1e8])
    found = log_expected_improvement(far, np.ones(5), 0.0)
    assert np.isfinite(found).all() and (np.diff(found) < 0).all()
    np.testing.assert_allclose(found, -(far**2) / 2, rtol=0.02)


def test_wrong_inputs_are_one_line() -> None:
    for mean, spread, best, message in (
        ([0.9], [0.1, 0.2], 0.9, "one each"),
        ([np.nan], [0.1], 0.9, "no finite number"),
        ([0.9], [0.1], np.inf, "no finite number"),
        ([0.9], [-0.1], 0.9, "a spread is -0.1"),
    ):
        for function in (expected_improvement, log_expected_improvement):
            with pytest.raises(ConfigError, match=message):
                function(mean, spread, best)
