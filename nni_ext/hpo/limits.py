"""Limits of a tuner from its ``classArgs``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.search.constraints import Constraint
from nas_core.search.limits import cost_limits
from nas_core.space import SearchSpace

LIMITS = ("max_latency_ms", "max_params_m", "max_flops_g", "max_memory_mb", "max_cache_mb")


def expand(path: object) -> str:
    return os.path.expandvars(os.path.expanduser(str(path)))


def make_constraints(
    space: SearchSpace | None, limits: Mapping[str, Any], latency_model: str | None, workload: Any = None
) -> list[Constraint]:
    """Return the constraints of the given limits.

    Args:
        workload: settings by name, for memory and cache.

    Raises:
        ConfigError: ``space`` or the latency model is missing.
    """
    if (latency_model is None) != ("max_latency_ms" not in limits):
        raise ConfigError("max_latency_ms and latency_model go together; 'nas-ext latency fit' makes a model")
    if not limits:
        return []
    if space is None:
        raise ConfigError(f"{next(iter(limits))} needs space: the costs of a network are known for a space by its name")
    costs = {name.removeprefix("max_"): limits.get(name) for name in LIMITS[1:]}
    # Formulas and the latency model need torch, which takes seconds to import; NNI gives a tuner ten seconds to start.
    constraints = cost_limits(space, costs, formulas_later=True, workload=workload)
    if latency_model is not None:
        if not Path(latency_model).is_file():
            raise DataError(
                f"no file {latency_model}, seen from {Path.cwd()}; NNI starts tuners in a folder of its own: give the"
                " whole path, or one that begins with $PWD"
            )
        model = cache(partial(_load, latency_model, space))
        constraints.insert(
            0, Constraint("latency_ms", limits["max_latency_ms"], lambda rows: model().predict_rows(rows))
        )
    return constraints


def _load(path: str, space: SearchSpace) -> Any:
    from nas_core.latency import load_latency_model

    return load_latency_model(path, "genes", space)
