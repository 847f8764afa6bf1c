"""The search strategies by name: the same in the command line, in NNI and in reports, with the same options.

A strategy is its class, which says the rest (:class:`~nas_core.search.strategies.description.StrategyDescription`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nas_core.errors import ConfigError
from nas_core.options import Option, config_from, options_of
from nas_core.registry import Registry
from nas_core.search.strategies.base import Strategy

_OURS = "nas_core.search.strategies"

STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy",
    "nas_ext.strategies",
    {
        "evolution": f"{_OURS}.evolution:HATEvolution",
        "random": f"{_OURS}.random_search:RandomSearch",
        "ranknas": f"{_OURS}.ranknas:RankNAS",
        "milp": f"{_OURS}.milp:MILP",
        "multi-objective": f"{_OURS}.multi_objective:MultiObjectiveEvolution",
    },
    Strategy,
    of_classes=True,
)


def strategy_options(name: str, taken: Collection[str] = ()) -> list[Option]:
    """The options of a strategy.

    Args:
        taken: names that are something else where the options are offered.

    Raises:
        UnknownChoiceError: no strategy of that name. ConfigError: an option has one of these names, or
            is of a type that no option has.
    """
    config_class = STRATEGIES.get(name).config_class
    options = list(options_of(config_class))
    for option in options:
        if option.name in taken:
            raise ConfigError(
                f"{option.name} of strategy {name!r} is the name of another option here; rename the field of"
                f" {config_class.__name__}, or uninstall what offers the strategy"
            )
    return options


def config_of(name: str, given: Mapping[str, Any]) -> Any:
    """The settings of a strategy of which only some are given, by the names of its configuration's fields.

    Raises:
        UnknownChoiceError: no strategy, or no option, of that name. ConfigError: a value of another type or out of
            range.
    """
    return config_from(STRATEGIES.get(name).config_class, given, f"option of strategy {name}")


def how_many(strategies: Sequence[Strategy]) -> str:
    """What searches of one kind evaluate at most, and which settings change it."""
    first = strategies[0]
    more = f" in each of {len(strategies)} searches" if len(strategies) > 1 else ""
    numbers = {name: f"{name} {value}" for name, value in asdict(first.config).items()}
    made = first.budget_told.format_map(numbers)
    return f"at most {first.budget:,} architectures{more} to evaluate" + (f": {made}" if made else "")
