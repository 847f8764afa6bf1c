"""How a fidelity follows from the one below: its scale, its slope, and the way back to units of the targets."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.predictor.fidelity.link import SHARE, Link


def test_what_is_learned_leads_back_to_the_targets() -> None:
    rng = np.random.default_rng(0)
    below = rng.standard_normal(60)
    targets = 0.9 + 0.02 * below + 0.005 * rng.standard_normal(60)
    link = Link.fit(targets, below)
    assert 0.7 < link.slope < 1.3
    learned = link.wanted(targets, below)
    assert abs(learned.mean() - 0.5) < 0.01
    # What is left to learn varies less than the targets' scores, but not as little as if all had been subtracted.
    assert (1 - SHARE) * 0.5 < learned.std() / link.scale.learn(targets).std() < 0.8
    np.testing.assert_allclose(link.values(learned, below), targets)
    rows = np.stack([learned - 0.01, learned + 0.01])
    assert (link.values(rows, below)[0] < targets).all() and (link.values(rows, below)[1] > targets).all()
    np.testing.assert_allclose(
        link.spread(learned, np.full(60, 0.01), below), np.diff(link.values(rows, below), axis=0)[0] / 2
    )
    np.testing.assert_allclose(link.score(learned, below), (link.scale.learn(targets) - 0.5) / 0.1)


def test_the_lowest_fidelity_has_none_below() -> None:
    targets = np.arange(10.0)
    link = Link.fit(targets, None)
    assert (link.slope, link.middle) == (0, 0)
    np.testing.assert_allclose(link.values(link.wanted(targets, None), np.zeros(10)), targets)


@pytest.mark.parametrize("below", [np.zeros(10), -np.arange(10.0)])
def test_what_says_nothing_or_the_contrary_is_not_subtracted(below: np.ndarray) -> None:
    assert Link.fit(np.arange(10.0), below).slope == 0


def test_files_hold_it() -> None:
    link = Link.fit(np.array([0.1, 0.5, 0.7, 0.9]), np.array([1.0, 2.0, 4.0, 3.0]))
    assert Link.from_json(link.to_json()) == link
    with pytest.raises(DataError, match="expected finite numbers"):
        Link.from_json({**link.to_json(), "slope": float("nan")})
