"""Strategies by name, with options by name."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.errors import ConfigError, NasExtError
from nas_core.search import STRATEGIES, EvolutionConfig, Strategy
from nas_core.search.registry import config_of, how_many
from tests.contracts.strategy import SPACE, TINY, limit

SMALL: dict[str, dict[str, Any]] = {
    "evolution": {"iterations": 3, "population": 12},
    "random": {"evaluations": 30},
    "ranknas": {"samples": 16, "rankings": 2, "per_ranking": 6, "candidates": 60, "generations": 2, "children": 20},
    "multi-objective": {"iterations": 3, "population": 10},
    "milp": {"evaluations": 30, "single_changes": 10, "per_round": 5},
}


def made(name: str, seed: int = 7, **given: Any) -> Strategy:
    config = config_of(name, SMALL[name] | given)
    return STRATEGIES.get(name).made(SPACE, [limit(3000.0)], config, ["loss", "latency_ms"], seed=seed)


def test_each_strategy_has_its_own_defaults() -> None:
    budgets = {name: config_of(name, {}) for name in SMALL}
    strategies = {
        name: STRATEGIES.get(name).made(SPACE, [], config, ["loss", "x"], seed=7) for name, config in budgets.items()
    }
    assert {name: one.budget for name, one in strategies.items()} == {
        "evolution": 3025, "random": 3025, "ranknas": 300, "multi-objective": 3000, "milp": 300,
    }  # fmt: skip
    probabilities = {name: one.describe().get("mutation_prob") for name, one in strategies.items()}
    assert probabilities == {"evolution": 0.3, "random": None, "ranknas": 0.3, "multi-objective": 0.1, "milp": None}
    assert all(one.seed == 7 for one in strategies.values())
    assert {name: one.objectives for name, one in strategies.items() if len(one.objectives) > 1} == {
        "multi-objective": ("loss", "x")
    }


def test_what_is_not_given_follows() -> None:
    config = config_of("multi-objective", {"population": 9})
    assert (config.population, config.mutations, config.crossovers) == (9, 5, 4)
    assert config_of("multi-objective", {"population": 9, "mutations": 2, "crossovers": None}).crossovers == 4
    assert config_of("evolution", {"parents": 5}).population == 105
    assert config_of("ranknas", {"ranker": "regression"}).trees.objective == "regression"
    assert config_of("ranknas", {"trees": {"members": 2}}).trees.members == 2


def test_what_a_space_cannot_do_is_said_when_it_is_known() -> None:
    config = config_of("ranknas", {"ranker": "nn-former"})
    with pytest.raises(ConfigError, match="no graph reader"):
        STRATEGIES.get("ranknas").made(TINY, [], config, ["loss"])


@pytest.mark.parametrize(
    ("strategy", "given", "typed"),
    [
        ("evolution", {"population": 30, "parents": 10, "mutations": 5, "crossovers": 5}, "expected 20, or only"),
        ("evolution", {"population": 3, "parents": 10}, "population is 3, which leaves -7 for mutations"),
        ("random", {"evaluations": 0}, "evaluations is 0; expected a whole number from 1 on"),
        ("multi-objective", {"mutation_prob": 2.0}, "mutation_prob is 2.0; expected a number above 0 to 1"),
        ("ranknas", {"rankings": 0}, "rankings is 0;"),
        ("ranknas", {"keep_genes": -1}, "keep_genes is -1;"),
        ("ranknas", {"per_ranking": 0}, "per_ranking is 0;"),
        ("ranknas", {"prune_by": "tau"}, "unknown prune_by 'tau'"),
        ("milp", {"single_changes": 300}, "single_changes is 300 and evaluations 300,"),
        ("milp", {"gap": 2.0}, "gap is 2.0;"),
    ],
)
def test_errors_name_options(strategy: str, given: dict[str, Any], typed: str) -> None:
    with pytest.raises(NasExtError) as caught:
        config_of(strategy, given)
    assert typed in caught.value.command_line and "EvolutionConfig" not in caught.value.command_line


@pytest.mark.parametrize("field", ["population", "parents", "mutation_prob"])
def test_text_in_place_of_a_number_is_shown_as_text(field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} is '30'; expected a (whole )?number"):
        EvolutionConfig.of(**{field: "30"})


def test_how_many_evaluations_is_told() -> None:
    told = how_many([made("evolution", parents=2, mutations=5, crossovers=5)] * 2)
    assert told == (
        "at most 32 architectures in each of 2 searches to evaluate: population 12 + (iterations 3 - 1) x (mutations 5"
        " + crossovers 5)"
    )
