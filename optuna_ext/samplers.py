"""The samplers by the names of their methods."""

from __future__ import annotations

from typing import Any

from nas_core.search.constraints import Limits
from nas_core.space import SearchSpace
from optuna_ext.sampler import SearchSampler


class HATEvolutionSampler(SearchSampler):
    """HAT's evolution (:class:`nas_core.search.HATEvolution`) as a sampler; options are those of ``EvolutionConfig``.

    With its defaults the first 125 trials are random; give a ``population`` that suits the number of your trials.
    """

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="evolution", **options)


class RankNASSampler(SearchSampler):
    """RankNAS (:class:`nas_core.search.RankNAS`) as a sampler; options are those of ``RankNASConfig``."""

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="ranknas", **options)


class MultiObjectiveSampler(SearchSampler):
    """NSGA-II on genes (:class:`nas_core.search.MultiObjectiveEvolution`) as a sampler, for studies with several
    directions; options are those of ``MultiObjectiveConfig``."""

    def __init__(self, space: SearchSpace, limits: Limits = (), **options: Any) -> None:
        super().__init__(space, limits, strategy="multi-objective", **options)
