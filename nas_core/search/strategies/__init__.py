"""Search strategies behind ask and tell, and what they share."""

from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.evolution import EvolutionConfig, HATEvolution
from nas_core.search.strategies.milp import MILP
from nas_core.search.strategies.milp_config import MILPConfig
from nas_core.search.strategies.multi_objective import MultiObjectiveConfig, MultiObjectiveEvolution
from nas_core.search.strategies.proposals import Proposals
from nas_core.search.strategies.random_search import RandomConfig, RandomSearch
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, RankerConfig
from nas_core.search.strategies.ranknas import RankNAS
from nas_core.search.strategies.ranknas_config import RankNASConfig

__all__ = [
    "MILP",
    "BoostedRanker",
    "EvolutionConfig",
    "HATEvolution",
    "MILPConfig",
    "MultiObjectiveConfig",
    "MultiObjectiveEvolution",
    "Proposals",
    "RandomConfig",
    "RandomSearch",
    "RankNAS",
    "RankNASConfig",
    "Ranker",
    "RankerConfig",
    "Strategy",
]
