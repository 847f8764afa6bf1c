"""Strategies by name, with options by name."""

from __future__ import annotations

from typing import Any

from nas_core.search import STRATEGIES, Strategy
from nas_core.search.registry import config_of, how_many
from tests.contracts.strategy import SPACE, limit

SMALL: dict[str, dict[str, Any]] = {
    "evolution": {"iterations": 3, "population": 12},
    "random": {"evaluations": 30},
    "ranknas": {"samples": 16, "rankings": 2, "per_ranking": 6, "candidates": 60, "generations": 2, "children": 20},
    "multi-objective": {"iterations": 3, "population": 10},
    "milp": {"evaluations": 30, "single_changes": 10, "per_round": 5},
}


def made(name: str, seed: int = 7, **given: Any) -> Strategy:
    config = config_of(name, SMALL[name] | given)
    return STRATEGIES.get(name).create(SPACE, [limit(3000.0)], config, ["loss", "latency_ms"], seed=seed)


def test_each_strategy_has_its_own_defaults() -> None:
    budgets = {name: config_of(name, {}) for name in SMALL}
    strategies = {
        name: STRATEGIES.get(name).create(SPACE, [], config, ["loss", "x"], seed=7) for name, config in budgets.items()
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


def test_how_many_evaluations_is_told() -> None:
    told = how_many([made("evolution", parents=2, mutations=5, crossovers=5)] * 2)
    assert told == (
        "at most 32 architectures in each of 2 searches to evaluate: population 12 + (iterations 3 - 1) x (mutations 5"
        " + crossovers 5)"
    )
