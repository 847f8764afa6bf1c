"""Conversion between search spaces and Optuna: genes to distributions, parameters of trials to architectures.

A parameter is named after its gene, with the index of the layer: ``ffn_dim.3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas_core.errors import SpaceError
from nas_core.optional import require
from nas_core.space import Architecture, Choice, SearchSpace, labels

MAX_OPTIONS = 10_000
"""Largest number of values of one parameter."""


def distributions_of(space: SearchSpace) -> dict[str, Any]:
    """Return parameter name -> categorical distribution, for the genes of all layers."""
    distributions = require("optuna.distributions", "genes as distributions", "optuna")
    return {label: distributions.CategoricalDistribution(row) for label, row in labels.options_by_label(space).items()}


def suggest_architecture(trial: Any, space: SearchSpace) -> Architecture:
    """Build an architecture with ``trial.suggest_categorical``: depths first, then the genes of each existing layer."""
    return labels.architecture_by(space, trial.suggest_categorical)


def architecture_of(trial: Any, space: SearchSpace) -> Architecture:
    """Return the architecture of a trial, or of a mapping of parameters; parameters that are not genes are ignored.

    Raises:
        ArchitectureError: a gene is missing, or its value is not in ``space``.
    """
    return labels.architecture_of(space, trial if isinstance(trial, Mapping) else trial.params)


def space_of(distributions: Mapping[str, Any], name: str = "optuna") -> SearchSpace:
    """Return a search space with one gene for each distribution.

    Raises:
        SpaceError: a distribution is continuous or too large, or has categories that are neither numbers nor strings.
    """
    if not distributions:
        raise SpaceError("no distributions were given; give at least one as {parameter: distribution}")
    return SearchSpace(name, [Choice(label, (_options(label, values),)) for label, values in distributions.items()])


def _options(label: str, distribution: Any) -> tuple[Any, ...]:
    if hasattr(distribution, "choices"):
        return tuple(distribution.choices)
    low, high, step = (getattr(distribution, name, None) for name in ("low", "high", "step"))
    if low is None or high is None or step is None:
        raise SpaceError(
            f"parameter {label!r} is {distribution!r}; expected a categorical, integer or stepped float distribution"
        )
    count = int((high - low) / step + 1e-9) + 1
    if count > MAX_OPTIONS:
        raise SpaceError(f"parameter {label!r} has {count} values; expected at most {MAX_OPTIONS}; give a larger step")
    integers = all(isinstance(number, int) for number in (low, step))
    return tuple(low + place * step if integers else round(low + place * step, 12) for place in range(count))
