"""The strategies by name, for ``NasExperiment``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

from nas_core import search
from nas_core.errors import ConfigError, unknown_choice
from nas_core.search import Constraint, EvolutionConfig, RandomConfig, RankerConfig, RankNASConfig
from nas_core.space import SearchSpace
from nni_ext.nas.strategy import AskTellStrategy

__all__ = ["HATEvolution", "RandomSearch", "RankNAS"]

_COMMON = ("constraints", "maximize", "seed", "max_tries", "record")


class _Configured(AskTellStrategy):
    """With the settings of a configuration of ``nas_core`` as keyword arguments."""

    searches: ClassVar[type[search.Strategy]]
    config_class: ClassVar[type[Any]]
    make_config: ClassVar[Callable[..., Any] | None] = None
    """Makes a configuration of settings by name; default: the class."""

    def __init__(self, **arguments: Any) -> None:
        common = {name: arguments.pop(name) for name in _COMMON if name in arguments}
        super().__init__(**common)
        known = [field.name for field in fields(self.config_class)]
        for name in arguments:
            if name not in known:
                raise unknown_choice(f"argument of {type(self).__name__}", name, [*_COMMON, *known])
        self.given = arguments
        try:
            self.config = (self.make_config or self.config_class)(**arguments)
        except TypeError as error:  # comparisons of what is no number
            raise ConfigError(f"arguments {arguments} of {type(self).__name__}: {error}") from None

    def make(self, space: SearchSpace, constraints: Sequence[Constraint], **common: Any) -> search.Strategy:
        return self.searches(space, constraints, self.config, **common)  # type: ignore[call-arg]

    def extra_repr(self) -> str:
        shown = {**self.given, "seed": self.seed} | {one.name: f"<= {one.limit:g}" for one in self.limits}
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class HATEvolution(_Configured):
    """HAT's evolution under hard limits. Beside the arguments of :class:`~nni_ext.nas.strategy.AskTellStrategy` it
    takes the settings of :class:`~nas_core.search.EvolutionConfig`: ``iterations``, ``population`` and more; those that
    are left out of the population and its parts are made of the others as HAT has them.

    Example:
        >>> space = AutoFormer()
        >>> flops = FlopsProfiler(space, torch.randn(1, 3, 224, 224))
        >>> strategy = HATEvolution(constraints={"flops": (flops, 1.5e9)}, seed=1)
        >>> NasExperiment(space, evaluator, strategy, config).run()
        >>> strategy.best().sample
    """

    searches = search.HATEvolution
    config_class = EvolutionConfig
    make_config = staticmethod(EvolutionConfig.of)


class RandomSearch(_Configured):
    """Distinct models within the limits, as :class:`~nas_core.search.RandomConfig` says; the baseline."""

    searches = search.RandomSearch
    config_class = RandomConfig


class RankNAS(_Configured):
    """RankNAS under hard limits, with the settings of :class:`~nas_core.search.RankNASConfig`; ``ranker`` may be a
    mapping of the settings of :class:`~nas_core.search.RankerConfig`.

    Where it is not told otherwise, a space whose genes are mostly names (operations) is ranked by which of them are
    chosen (``encoding="onehot"``); and in a model space of NNI, where each layer's gene is one of its own, no gene is
    dropped (``keep=0``): the five for the metric and five for each limit that ``nas_core`` keeps are meant for genes
    shared by all layers.
    """

    searches = search.RankNAS
    config_class = RankNASConfig

    def __init__(self, **arguments: Any) -> None:
        ranker = arguments.get("ranker")
        self._encoded = isinstance(ranker, RankerConfig) or (isinstance(ranker, Mapping) and "encoding" in ranker)
        if isinstance(ranker, Mapping):
            for name in ranker:
                if name not in (known := [field.name for field in fields(RankerConfig)]):
                    raise unknown_choice("setting of a ranker", name, known)
            arguments["ranker"] = RankerConfig(**ranker)
        elif ranker is not None and not isinstance(ranker, RankerConfig):
            raise ConfigError(f"ranker is {ranker!r}; expected a mapping of settings or a RankerConfig")
        super().__init__(**arguments)

    @property
    def importance(self) -> dict[str, dict[str, float]]:
        """Metric, then limited costs -> label or gene -> importance in the last ranking, the largest first. Costs have
        one where genes are dropped."""
        return dict(self.search.importance) if isinstance(self.search, search.RankNAS) else {}

    def make(self, space: SearchSpace, constraints: Sequence[Constraint], **common: Any) -> search.Strategy:
        genes = [choice.options[0] for choice in space.choices]
        names = sum(all(isinstance(option, str) for option in options) for options in genes)
        if not self._encoded and 2 * names > len(genes):
            self.config = replace(self.config, ranker=replace(self.config.ranker, encoding="onehot"))
        if "keep" not in self.given and not space.slots.depth_genes:
            self.config = replace(self.config, keep=0)
        return super().make(space, constraints, **common)
