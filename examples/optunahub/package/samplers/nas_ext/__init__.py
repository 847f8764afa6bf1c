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

__all__ = [
    "HATEvolutionSampler",
    "MultiObjectiveSampler",
    "RankNASSampler",
    "SearchSampler",
    "architecture_of",
    "as_objective",
    "suggest_architecture",
]
