"""Minimised metrics of a multi-objective search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError
from nas_core.search import Strategy
from nas_core.search.metrics import metric_named

NEGATED = "-"
"""Prefix of a maximised metric"""


def further_objectives(
    strategy: type[Strategy], objectives: Any, metric: str, limited: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the minimised metrics after the first of ``objectives``.

    Args:
        objectives: None: ``metric`` and ``limited``. A minus marks a larger-is-better metric unless its name is known.
        metric: first objective.
        limited: metrics with a limit.

    Raises:
        ConfigError: invalid objectives, or the wrong number for the strategy.
    """
    if not strategy.multi_objective:
        if objectives is not None:
            raise ConfigError(
                f"objectives are {objectives!r}, but strategy {strategy.name} minimises {metric} alone; leave them out"
            )
        return ()
    names = [metric, *limited] if objectives is None else list(objectives)
    plain = [name.removeprefix(NEGATED) for name in names]
    if len(plain) < 2 or len(set(plain)) != len(plain) or names[0] != metric:
        raise ConfigError(
            f"objectives are {names}; strategy {strategy.name} minimises {metric} and other metrics of a trial's"
            f" result: give objectives: [{metric}, latency_ms], or a limit"
        )
    return tuple(name if name.startswith(NEGATED) else _minimised(name) for name in names[1:])


def with_negatives(metrics: Mapping[str, float | None], minimised: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics and the negatives of maximised ones."""
    complete = dict(metrics)
    for name in minimised:
        number = complete.get(name.removeprefix(NEGATED))
        if name.startswith(NEGATED) and number is not None:
            complete[name] = -number
    return complete


def _minimised(name: str) -> str:
    return f"{NEGATED}{name}" if metric_named(name).larger_is_better else name
