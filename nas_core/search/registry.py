"""Registry of search strategies and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas_core.errors import ConfigError
from nas_core.options import config_from
from nas_core.registry import Registry
from nas_core.search.strategies.base import Strategy

_OURS = "nas_core.search.strategies"

FEW = 500
"""Largest number of evaluations for which the default strategy fits a Gaussian process to all results."""

AT_ONCE = 5
"""Number of architectures that these strategies propose at once."""

STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy",
    "nas_ext.strategies",
    {
        "evolution": f"{_OURS}.evolution:HATEvolution",
        "random": f"{_OURS}.random_search:RandomSearch",
        "ranknas": f"{_OURS}.ranknas:RankNAS",
        "multi-objective": f"{_OURS}.multi_objective:MultiObjectiveEvolution",
        "hypervolume": f"{_OURS}.hypervolume:HypervolumeSearch",
    },
    Strategy,
    of_classes=True,
)
"""Registry of search strategies; other packages add entry points in the group ``nas_ext.strategies``."""


def config_of(name: str, settings: Mapping[str, Any], evaluations: int | None = None) -> Any:
    """Return a strategy's settings.

    Args:
        evaluations: largest number of evaluations, from which other settings follow; None: as in the settings.
    """
    if evaluations is not None:
        sized = STRATEGIES.get(name).settings_for(evaluations)
        if both := [option for option in sized if option in settings]:
            raise ConfigError(
                f"the number of evaluations, {evaluations}, also sets {' and '.join(both)} of strategy {name}; leave"
                " out the number or these settings"
            )
        settings = {**sized, **settings}
    return config_from(STRATEGIES.get(name).config_class, settings, f"option of strategy {name}")


def prior_options(kind: type[Strategy], prior: Any) -> dict[str, Any]:
    """Return the options of :meth:`Strategy.create` for a prior; none without one.

    Raises:
        ConfigError: the strategy does not use a prior.
    """
    if prior is None:
        return {}
    if not kind.uses_prior:
        raise ConfigError(f"strategy {kind.name} does not use a prior; use ranknas, or leave out the prior")
    return {"prior": prior}


def default_strategy(evaluations: int | None, front: bool, workers: int = 1) -> str:
    """Return the strategy that is best for a number of evaluations, by ``benchmarks/results/search_tables.json``.

    Args:
        evaluations: None: the number of the strategy's default settings.
        front: True to minimise two metrics.
        workers: number of simultaneous evaluations; strategies for few evaluations propose :data:`AT_ONCE`.
    """
    few = (evaluations is None or evaluations <= FEW) and workers <= AT_ONCE
    if front:
        return "hypervolume" if few else "multi-objective"
    return "ranknas" if few else "evolution"


def describe_budget(strategies: Sequence[Strategy]) -> str:
    """Return the largest number of evaluations as text, with its formula."""
    first = strategies[0]
    per_search = f" in each of {len(strategies)} searches" if len(strategies) > 1 else ""
    numbers = {name: f"{name} {value}" for name, value in asdict(first.config).items()}
    formula = first.budget_formula.format_map(numbers)
    return f"at most {first.budget:,} architectures{per_search} to evaluate" + (f": {formula}" if formula else "")
