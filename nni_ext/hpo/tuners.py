"""The searches of ``nas_core`` as tuners of NNI; their names in YAML are in ``algorithms.yml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from nas_core.errors import ConfigError, unknown_choice
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    RandomConfig,
    RandomSearch,
    RankerConfig,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.space import SearchSpace
from nni_ext.hpo.tuner import SearchTuner

__all__ = ["HATEvolutionTuner", "RandomSearchTuner", "RankNASTuner"]

NN_FORMER = "nn-former"


class HATEvolutionTuner(SearchTuner):
    """``tuner: {name: HATEvolution, classArgs: {..}}``; settings are those of
    :class:`~nas_core.search.EvolutionConfig`. ``population`` may be left to be the sum of its parts, or the parts to
    share it in HAT's proportions."""

    config_class = EvolutionConfig
    make_config = staticmethod(EvolutionConfig.of)

    def make(self, space: SearchSpace, constraints: Sequence[Constraint]) -> Strategy:
        return HATEvolution(
            space, constraints, self.config, seed=self.seed, metric=self.minimized, max_tries=self.max_tries
        )


class RankNASTuner(SearchTuner):
    """``tuner: {name: RankNAS, classArgs: {..}}``; settings are those of :class:`~nas_core.search.RankNASConfig` (where
    ``keep`` genes stay free for the metric, and as many for each limit unless ``prune_by`` is ``metric``), with
    ``ranker`` as a mapping of :class:`~nas_core.search.RankerConfig`'s, or ``nn-former`` where a graph reader takes the
    architectures of ``space``."""

    config_class = RankNASConfig

    def _configure(self, arguments: Mapping[str, Any]) -> RankNASConfig:
        given = dict(arguments)
        ranker = given.pop("ranker", None) or {}
        self._nn_former = ranker == NN_FORMER
        if self._nn_former:
            ranker = {}
        known = [field.name for field in fields(RankerConfig)]
        if not isinstance(ranker, Mapping):
            raise ConfigError(
                f"ranker is {ranker!r}; expected {NN_FORMER}, or settings such as {{objective: regression}}"
            )
        for name in ranker:
            if name not in known:
                raise unknown_choice("setting of the ranker", name, known)
        config: RankNASConfig = super()._configure({**given, "ranker": RankerConfig(**ranker)})
        return config

    def make(self, space: SearchSpace, constraints: Sequence[Constraint]) -> Strategy:
        other: dict[str, Any] = {}
        if self._nn_former:
            from nas_core.predictor.ranker import NNFormerRanker, reader_of  # torch, which takes seconds to import

            reader_of(space)  # said now, not after the first hundred trials
            other = {"ranker": NNFormerRanker, "ranker_name": NN_FORMER}
        common: dict[str, Any] = {"seed": self.seed, "metric": self.minimized, "max_tries": self.max_tries}
        return RankNAS(space, constraints, self.config, **common, **other)


class RandomSearchTuner(SearchTuner):
    """``tuner: {name: ConstrainedRandom, classArgs: {..}}``; settings are those of
    :class:`~nas_core.search.RandomConfig`."""

    config_class = RandomConfig

    def make(self, space: SearchSpace, constraints: Sequence[Constraint]) -> Strategy:
        return RandomSearch(
            space, constraints, self.config, seed=self.seed, metric=self.minimized, max_tries=self.max_tries
        )
