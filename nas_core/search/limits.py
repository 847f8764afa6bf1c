"""Limits as users name them, made into constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint
from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from nas_core.latency.by_genes import GeneLatencyModel

MEMORY = ("memory_mb", "cache_mb")
"""What is limited at the lengths, the beam and the batch of a workload."""

Costs = Mapping[str, Callable[[Architecture], float]]


def costs_on_paper(space: SearchSpace) -> Costs:
    """``params_m`` and ``flops_g`` of an architecture, where its space is of a known kind of network.

    Raises:
        SpaceError, UnknownChoiceError: the space has options that its kind cannot have.
    """
    from nas_core.models.kind import fitting_kind  # torch, which takes seconds to import

    kind = fitting_kind(space)
    return {} if kind is None else {"params_m": kind.params_m, "flops_g": kind.flops_g}


def memory_on_paper(space: SearchSpace, workload: Mapping[str, Any] | None = None) -> Costs:
    """``memory_mb`` and ``cache_mb`` of an architecture, where its space is of a known kind of network.

    Args:
        workload: settings of the kind's workload by name, such as lengths and beam; the others have their defaults.

    Raises:
        ConfigError, UnknownChoiceError: a setting that the kind's workload does not have. Others as of
            :func:`costs_on_paper`.
    """
    from nas_core.models.kind import fitting_kind  # torch, which takes seconds to import

    kind = fitting_kind(space)
    if kind is None:
        return {}
    config = kind.config(workload or {})
    return {"memory_mb": partial(kind.memory_mb, config=config), "cache_mb": partial(kind.cache_mb, config=config)}


def cost_limits(
    space: SearchSpace,
    limits: Mapping[str, float | None],
    formulas_later: bool = False,
    workload: Mapping[str, Any] | None = None,
) -> list[Constraint]:
    """Constraints on ``params_m``, ``flops_g``, ``memory_mb`` and ``cache_mb``; None is no limit.

    Args:
        formulas_later: look for the formulas when the first architecture is asked for, and raise their errors then:
            they come with torch, for which not every program can wait at its start.
        workload: what memory and cache are counted at, see :func:`memory_on_paper`.

    Raises:
        ConfigError: the space's networks have no formula for it, or no cache. ConstraintError: a limit that is not
            above 0.
    """
    constraints = []
    for name, limit in limits.items():
        if limit is not None:
            formula = _later(space, name, workload) if formulas_later else _formula(space, name, workload)
            constraints.append(Constraint.per_architecture(name, limit, space, formula))
    return constraints


def _formula(space: SearchSpace, name: str, workload: Mapping[str, Any] | None) -> Callable[[Architecture], float]:
    costs = memory_on_paper(space, workload) if name in MEMORY else costs_on_paper(space)
    if name not in costs:
        raise ConfigError(f"{name} has no formula for space {space.name!r}; limit the latency instead")
    if name in MEMORY:
        costs[name](space.smallest())  # a kind without a cache says so at once
    return costs[name]


def _later(space: SearchSpace, name: str, workload: Mapping[str, Any] | None) -> Callable[[Architecture], float]:
    found = cache(lambda: _formula(space, name, workload))
    return lambda architecture: found()(architecture)


def latency_limit(model: GeneLatencyModel, limit_ms: float) -> Constraint:
    """Make a constraint of a latency model and a limit.

    Raises:
        ConstraintError: a limit that is not above 0.
    """
    return Constraint("latency_ms", limit_ms, model.predict_rows)
