"""Conversion between search spaces and Optuna: genes to distributions, parameters of trials to architectures.

A parameter is named after its gene, with the index of the layer: ``ffn_dim.3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas_core.optional import require
from nas_core.space import Architecture, SearchSpace, labels


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
