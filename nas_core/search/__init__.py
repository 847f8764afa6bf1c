"""Architecture search: strategies, constraints, Pareto archive and resumable runs."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.search.archive import ParetoArchive
    from nas_core.search.checkpoint import SearchSettings, search_checkpoint
    from nas_core.search.constraints import Constraint, InfeasibleError
    from nas_core.search.engine import SearchResult, search
    from nas_core.search.registry import STRATEGIES
    from nas_core.search.strategies.base import Strategy
    from nas_core.search.strategies.evolution import EvolutionConfig, HATEvolution
    from nas_core.search.strategies.hypervolume import HypervolumeConfig, HypervolumeSearch
    from nas_core.search.strategies.multi_objective import MultiObjectiveConfig, MultiObjectiveEvolution
    from nas_core.search.strategies.random_search import RandomConfig, RandomSearch
    from nas_core.search.strategies.ranknas import RankNAS, RankNASConfig

__all__ = [
    "STRATEGIES",
    "Constraint",
    "EvolutionConfig",
    "HATEvolution",
    "HypervolumeConfig",
    "HypervolumeSearch",
    "InfeasibleError",
    "MultiObjectiveConfig",
    "MultiObjectiveEvolution",
    "ParetoArchive",
    "RandomConfig",
    "RandomSearch",
    "RankNAS",
    "RankNASConfig",
    "SearchResult",
    "SearchSettings",
    "Strategy",
    "search",
    "search_checkpoint",
]

__getattr__, __dir__ = lazy_names(__name__)
