"""OptunaHub package: samplers for neural architecture search."""

from optuna_ext import (
    HATEvolutionSampler,
    MultiObjectiveSampler,
    RankNASSampler,
    SearchSampler,
    architecture_of,
    as_objective,
    suggest_architecture,
)
from optuna_ext.genes import space_of

__all__ = [
    "HATEvolutionSampler",
    "MultiObjectiveSampler",
    "RankNASSampler",
    "SearchSampler",
    "architecture_of",
    "as_objective",
    "space_of",
    "suggest_architecture",
]
