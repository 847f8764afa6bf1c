"""Any search strategy of ``nas_core``, by its name, for ``NasExperiment``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nas_core.errors import unknown_choice
from nas_core.search import STRATEGIES, Constraint, Strategy
from nas_core.search.registry import config_of, strategy_options
from nas_core.space import SearchSpace
from nni_ext.nas.strategy import AskTellStrategy
from nni_ext.objectives import further_objectives

_COMMON = ("constraints", "objectives", "maximize", "seed", "max_tries", "record")


class SearchStrategy(AskTellStrategy):
    """A strategy by its name: ``SearchStrategy("evolution", population=30)``.

    Beside the arguments of :class:`~nni_ext.nas.strategy.AskTellStrategy` it takes the strategy's options, which are
    those of ``nas-ext search --help`` by the names of the fields of its configuration. Those that are not given suit
    the model space: where each layer's gene is one of its own, as in NNI's, ``ranknas`` drops none.

    Args:
        strategy: as in ``nas-ext search --strategy``.
        arguments: as above. ``objectives`` is for a strategy that weighs several metrics (``multi-objective``):
            ``["default", "latency_ms"]``, metrics of what evaluators report, ``default`` first, with a minus in front
            where larger is better and the name does not tell; default: ``default`` and what is limited.

    Raises:
        UnknownChoiceError: no strategy, or no argument, of that name. ConfigError: a value of another type or out of
            range.

    Example:
        >>> space = AutoFormer()
        >>> flops = FlopsProfiler(space, torch.randn(1, 3, 224, 224))
        >>> strategy = SearchStrategy("evolution", constraints={"flops": (flops, 1.5e9)}, seed=1)
        >>> NasExperiment(space, evaluator, strategy, config).run()
        >>> strategy.best().sample
    """

    def __init__(self, strategy: str, **arguments: Any) -> None:
        self.kind = STRATEGIES.get(str(strategy))
        """The strategy's class."""
        common = {name: arguments.pop(name) for name in _COMMON if name in arguments}
        options = [option.name for option in strategy_options(self.kind.name, _COMMON)]
        for name in arguments:
            if name not in options:
                raise unknown_choice(f"argument of strategy {self.kind.name}", name, [*_COMMON, *options])
        self.given, self.config = arguments, config_of(self.kind.name, arguments)
        objectives = common.pop("objectives", None)
        super().__init__(**common)
        further = further_objectives(self.kind, objectives, "default", [limit.name for limit in self.limits])
        self.further_objectives = further

    def make(self, space: SearchSpace, constraints: Sequence[Constraint], **common: Any) -> Strategy:
        self.config = self.kind.suited(self.config, self.given, space)
        objectives = [common.pop("metric"), *self.further_objectives]
        made: Strategy = self.kind.made(space, constraints, self.config, objectives, **common)
        return made

    def extra_repr(self) -> str:
        shown = {**self.given, "seed": self.seed} | {one.name: f"<= {one.limit:g}" for one in self.limits}
        return ", ".join([repr(self.kind.name), *(f"{name}={value}" for name, value in shown.items())])
