"""Architecture search: strategies, constraints, Pareto archive, resumable runs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nas_core.search.archive import Entry, ParetoArchive
from nas_core.search.constraints import Constraint, InfeasibleError
from nas_core.search.engine import SearchResult, search
from nas_core.search.executor import DeviceExecutor
from nas_core.search.finalists import Finalist
from nas_core.search.registry import STRATEGIES
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.evolution import EvolutionConfig, HATEvolution
from nas_core.search.strategies.milp import MILP, MILPConfig
from nas_core.search.strategies.multi_objective import MultiObjectiveConfig, MultiObjectiveEvolution
from nas_core.search.strategies.random_search import RandomConfig, RandomSearch
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, RankerConfig
from nas_core.search.strategies.ranknas import RankNAS, RankNASConfig

if TYPE_CHECKING:
    from nas_core.search.checkpoint import CheckpointEvaluation, SearchSettings, search_checkpoint

__all__ = [
    "MILP",
    "STRATEGIES",
    "BoostedRanker",
    "CheckpointEvaluation",
    "Constraint",
    "DeviceExecutor",
    "Entry",
    "EvolutionConfig",
    "Finalist",
    "HATEvolution",
    "InfeasibleError",
    "MILPConfig",
    "MultiObjectiveConfig",
    "MultiObjectiveEvolution",
    "ParetoArchive",
    "RandomConfig",
    "RandomSearch",
    "RankNAS",
    "RankNASConfig",
    "Ranker",
    "RankerConfig",
    "SearchResult",
    "SearchSettings",
    "Strategy",
    "search",
    "search_checkpoint",
]

_WITH_TORCH = ("CheckpointEvaluation", "SearchSettings", "search_checkpoint")
"""Names of a module that imports torch."""


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("nas_core.search.checkpoint"), name)
