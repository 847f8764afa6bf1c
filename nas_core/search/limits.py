"""Constraints on latency, parameters, FLOPs and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint
from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from nas_core.latency.by_genes.base import GeneLatencyModel

MEMORY = ("memory_mb", "cache_mb")
"""Limits that depend on the sequence lengths, the beam or the batch size."""

Costs = Mapping[str, Callable[[Architecture], float]]


def costs_on_paper(space: SearchSpace) -> Costs:
    """Return functions for ``params_m`` and ``flops_g`` of an architecture; empty if no network kind fits the space."""
    from nas_core.models.kind import fitting_kind  # imports torch

    kind = fitting_kind(space)
    return {} if kind is None else {"params_m": kind.params_m, "flops_g": kind.flops_g}


def memory_on_paper(space: SearchSpace, workload: Mapping[str, Any] | None = None) -> Costs:
    """Return functions for ``memory_mb`` and ``cache_mb`` of an architecture; empty if no network kind fits the space.

    Args:
        workload: settings such as ``{"source_length": 30, "beam": 5}``.
    """
    from nas_core.models.kind import fitting_kind  # imports torch

    kind = fitting_kind(space)
    if kind is None:
        return {}
    config = kind.config(workload or {})
    return {"memory_mb": partial(kind.memory_mb, config=config), "cache_mb": partial(kind.cache_mb, config=config)}


def cost_limits(
    space: SearchSpace,
    limits: Mapping[str, float | None],
    workload: Mapping[str, Any] | None = None,
) -> list[Constraint]:
    """Return constraints on ``params_m``, ``flops_g``, ``memory_mb`` and ``cache_mb``.

    Args:
        limits: metric -> largest value allowed; None means no limit.
        workload: as for :func:`memory_on_paper`.
    """
    constraints = []
    for name, limit in limits.items():
        if limit is not None:
            formula = cache(partial(_formula, space, name, workload))  # torch is imported with the first prediction
            constraints.append(Constraint.per_architecture(name, limit, space, partial(_call, formula)))
    return constraints


def _formula(space: SearchSpace, name: str, workload: Mapping[str, Any] | None) -> Callable[[Architecture], float]:
    costs = memory_on_paper(space, workload) if name in MEMORY else costs_on_paper(space)
    if name not in costs:
        raise ConfigError(f"{name} cannot be computed for search space {space.name!r}; limit the latency instead")
    if name in MEMORY:
        costs[name](space.smallest())  # raises the error of a kind without a cache
    return costs[name]


def _call(formula: Callable[[], Callable[[Architecture], float]], architecture: Architecture) -> float:
    return formula()(architecture)


def latency_limit(model: GeneLatencyModel, limit_ms: float) -> Constraint:
    return Constraint("latency_ms", limit_ms, model.predict_rows)
