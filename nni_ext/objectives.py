"""Names of the minimised metrics of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas_core.errors import ConfigError
from nas_core.search import Strategy
from nas_core.search.metrics import metric_named

NEGATED = "-"
"""Prefix of the name of a maximised metric; the value under this name is negated."""


def further_objectives(
    strategy: type[Strategy], objectives: Any, metric: str, limited: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of the minimised metrics other than ``metric``; empty for a single-objective strategy.

    Args:
        objectives: names of all metrics, larger-is-better ones with a minus; default: ``metric`` and ``limited``.
        metric: first objective.
        limited: names of metrics with a limit.

    Raises:
        ConfigError: the objectives are invalid, or too few or too many for the strategy.
    """
    if not strategy.multi_objective:
        if objectives is not None:
            raise ConfigError(
                f"objectives are {objectives!r}, but strategy {strategy.name} minimises only {metric}; leave objectives"
                " out, or give strategy multi-objective"
            )
        return ()
    names = [metric, *limited] if objectives is None else list(objectives)
    plain = [name.removeprefix(NEGATED) for name in names]
    if len(plain) < 2 or len(set(plain)) != len(plain) or names[0] != metric:
        raise ConfigError(
            f"objectives are {names}; expected {metric} and at least one other metric of the trials' results for"
            f" strategy {strategy.name}, such as [{metric}, latency_ms]"
        )
    return tuple(name if name.startswith(NEGATED) else _minimised(name) for name in names[1:])


def with_negatives(metrics: Mapping[str, float | None], minimised: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics, and the negative value of each metric in ``minimised`` that has a minus."""
    extended = dict(metrics)
    for name in minimised:
        number = extended.get(name.removeprefix(NEGATED))
        if name.startswith(NEGATED) and number is not None:
            extended[name] = -number
    return extended


def _minimised(name: str) -> str:
    return f"{NEGATED}{name}" if metric_named(name).larger_is_better else name
