"""Strategies from the options of a command line."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.search import EvolutionConfig, RankNAS
from nas_core.search.registry import STRATEGIES, StrategyOptions, strategy_maker
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


@pytest.mark.parametrize(
    ("strategy", "changes", "typed"),
    [
        ("evolution", {"population": 30, "parents": 10}, "--population is 30, but --parents + --mutations + --crossov"),
        ("evolution", {"population": 30, "parents": 10}, "only some of the four: leave one out, and it follows"),
        ("random", {"iterations": 0}, "--iterations is 0; expected a whole number of at least 1"),
        ("evolution", {"population": 3}, "--population is 3, which leaves -7 for --parents"),
        ("multi-objective", {"mutation_prob": 2.0}, "--mutation-prob is 2.0; expected a probability"),
        ("ranknas", {"rankings": 0}, "--rankings is 0;"),
        ("ranknas", {"keep_genes": -1}, "--keep-genes is -1;"),
        ("ranknas", {"per_ranking": 0}, "--per-ranking is 0;"),
        ("ranknas", {"prune_by": "tau"}, "unknown --prune-by 'tau'"),
    ],
)
def test_errors_name_options(strategy: str, changes: dict[str, Any], typed: str) -> None:
    with pytest.raises(NasExtError) as caught:
        strategy_maker(strategy, options(**changes))
    assert typed in caught.value.command_line and "EvolutionConfig" not in caught.value.command_line
    assert "--" not in str(caught.value)  # who calls from Python has no options


@pytest.mark.parametrize("field", ["population", "parents", "mutation_prob"])
def test_text_in_place_of_a_number_is_shown_as_text(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} is '30'; expected a (whole number|probability)"):
        EvolutionConfig.of(**{field: "30"})
