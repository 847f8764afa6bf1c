"""The stop of supernet training when the ranking of subnets no longer changes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.space import SearchSpace, get_space
from nas_core.supernet.stability import Stability, StabilityConfig
from tests.contracts.strategy import TINY

SPACE = get_space("hat_small")


def stability(count: int = 40, **settings: Any) -> Stability:
    return Stability(SPACE, StabilityConfig(architectures=count, **settings))


def test_the_list_is_fixed_and_distinct() -> None:
    first = stability().architectures
    assert len(set(first)) == 40 and all(architecture in SPACE for architecture in first)
    assert stability().architectures == first
    assert stability(seed=1).architectures != first
    assert len(Stability(TINY, StabilityConfig(architectures=100)).architectures) == TINY.cardinality()
    with pytest.raises(ConfigError, match="one architecture"):
        Stability(SearchSpace.of(SPACE.smallest(), SPACE))


def test_it_stops_when_the_ranking_settles() -> None:
    """Losses fall, and the noise between subnets with them: tau grows, and stops training above the threshold."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    stop = stability(tau=0.9, patience=100)
    taus = []
    for epoch in range(30):
        tau = stop.update(10 / (epoch + 1) + truth + rng.normal(size=40) * 2.0**-epoch)
        assert (tau is None) == (epoch == 0)
        taus.append(tau)
        if stop.stable:
            break
    assert 3 < epoch < 29 and stop.taus == taus[1:]
    assert stop.taus[-1] > 0.9 >= max(stop.taus[:-1])


def test_it_stops_when_tau_has_risen_often_enough_in_a_row() -> None:
    stop = stability(tau=1.0, patience=2)
    for taus, rises, stable in (
        ([], 0, False),
        ([0.1], 0, False),
        ([0.1, 0.2, 0.3], 2, False),
        ([0.1, 0.2, 0.3, 0.3], 0, False),
        ([0.5, 0.1, 0.2, 0.3, 0.4], 3, True),
    ):
        stop.taus = taus
        assert (stop.rises, stop.stable) == (rises, stable)


def test_equal_and_reversed_losses() -> None:
    stop = stability(3)
    assert stop.update([1, 2, 3]) is None
    assert stop.update([3, 2, 1]) == -1
    assert stop.update([1, 1, 1]) == 0
    assert not stop.stable


def test_the_state_is_plain_and_continues() -> None:
    rng = np.random.default_rng(1)
    one, other = stability(5), stability(5)
    for _ in range(3):
        one.update(rng.normal(size=5))
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    losses = rng.normal(size=5)
    assert other.update(losses) == one.update(losses)
    assert other.taus == one.taus
    with pytest.raises(DataError, match="5 losses, expected 6"):
        stability(6).load_state_dict(one.state_dict())
    for broken in ({}, {"losses": 1, "taus": []}, {"losses": ["x"], "taus": []}):
        with pytest.raises(DataError, match="not the state"):
            stability(5).load_state_dict(broken)


@pytest.mark.parametrize("losses", [[1.0, 2.0], [1.0, 2.0, math.nan], [1.0, 2.0, 3.0, 4.0]])
def test_losses_that_are_missing_or_no_numbers_are_refused(losses: list[float]) -> None:
    with pytest.raises(DataError, match="of the 3 architectures"):
        stability(3).update(losses)


@pytest.mark.parametrize("settings", [{"architectures": 1}, {"tau": 0.0}, {"tau": 1.5}, {"patience": 0}])
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="stability"):
        StabilityConfig(**settings)
