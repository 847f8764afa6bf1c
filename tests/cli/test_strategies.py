"""Strategies from the options of a command line."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.cli.strategies import STRATEGIES, StrategyOptions, strategy_maker
from nas_core.errors import ConfigError
from nas_core.search import RankNAS
from tests.contracts.strategy import SPACE, TINY


def options(**changes: Any) -> StrategyOptions:
    given: dict[str, Any] = {
        "iterations": 3, "population": None, "parents": None, "mutations": 5, "crossovers": 5, "mutation_prob": None,
        "samples": 10, "rankings": 1, "per_ranking": 5, "keep_genes": 0, "ranker": None,
    }  # fmt: skip
    return StrategyOptions(**{**given, **changes})


def test_each_strategy_has_its_own_defaults() -> None:
    made = {name: strategy_maker(name, options())(SPACE, [], ["loss", "params_m"], 7) for name in STRATEGIES}
    assert {name: strategy.budget for name, strategy in made.items()} == {
        "evolution": 25 + 10 + 2 * 10,
        "random": 25 + 10 + 2 * 10,
        "ranknas": 10 + 5,
        "multi-objective": 100 + 2 * 10,
    }
    probabilities = {name: strategy.describe().get("mutation_prob") for name, strategy in made.items()}
    assert probabilities == {"evolution": 0.3, "random": None, "ranknas": 0.3, "multi-objective": 0.1}
    assert all(strategy.seed == 7 for strategy in made.values())
    assert made["multi-objective"].objectives == ("loss", "params_m")


def test_what_a_space_cannot_do_is_said_when_it_is_known() -> None:
    with pytest.raises(ConfigError, match="nothing to weigh against loss"):
        strategy_maker("multi-objective", options())(TINY, [], ["loss"], 0)
    with pytest.raises(ConfigError, match="no graph reader"):
        strategy_maker("ranknas", options(ranker="nn-former"))(TINY, [], ["loss"], 0)
    assert isinstance(strategy_maker("ranknas", options(ranker="regression"))(TINY, [], ["loss"], 0), RankNAS)
