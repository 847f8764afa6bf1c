"""Optuna, imported late, so that its absence is an error that says what to install."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from nas_core.optional import require


def optuna_module(feature: str, module: str = "optuna") -> ModuleType:
    """A module of Optuna, imported now.

    Raises:
        MissingHostError: Optuna is absent or does not import.
    """
    return require(module, feature, "optuna")


def set_constraint(trial: Any, name: str, value: float) -> None:
    """Say how far a trial is outside a limit, at most 0 within; before Optuna 5 trials had no place for it."""
    if hasattr(trial, "set_constraint"):
        trial.set_constraint(name, value)
