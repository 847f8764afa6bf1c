"""Optuna plug-in: search strategies as samplers for any number of workers, supernets as objectives.

Importing this package does not import Optuna.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from optuna_ext.genes import architecture_of, suggest_architecture
    from optuna_ext.objective import as_objective
    from optuna_ext.sampler import HATEvolutionSampler, MultiObjectiveSampler, RankNASSampler, SearchSampler

__all__ = [
    "HATEvolutionSampler",
    "MultiObjectiveSampler",
    "RankNASSampler",
    "SearchSampler",
    "architecture_of",
    "as_objective",
    "suggest_architecture",
]

__getattr__, __dir__ = lazy_names(__name__)
