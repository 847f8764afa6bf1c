"""Random search: the contract, and that results change nothing."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from nas_core.search import RandomConfig, RandomSearch
from tests.contracts.strategy import SPACE, drive, limit


def test_it_asks_exactly_as_often_as_told_to() -> None:
    strategy = RandomSearch(SPACE, [limit(3000.0)], RandomConfig(evaluations=130), seed=0)
    assert len(drive(strategy, 1000)) == strategy.budget == 130
    assert strategy.finished


def test_it_does_not_wait_for_results() -> None:
    waiting = RandomSearch(SPACE, [], RandomConfig(evaluations=300), seed=0)
    told = RandomSearch(SPACE, [], RandomConfig(evaluations=300), seed=0)
    assert waiting.ask(1000) == drive(told, 1000)


@pytest.mark.parametrize("settings", [{"evaluations": 0}, {"batch": 0}, {"batch": 2.5}, {"evaluations": True}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        RandomConfig(**settings)
