"""What a search strategy says about itself, from which the command line, NNI and reports know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nas_core.options import NoSettings
from nas_core.search.constraints import Constraint
from nas_core.space import SearchSpace


class StrategyDescription:
    """The part of a strategy that is known before it searches. One line in :mod:`nas_core.search.registry`, or an entry
    point of another distribution, offers it everywhere."""

    name: ClassVar[str] = ""
    """Under which it is registered, and which people read everywhere."""
    purpose: ClassVar[str] = ""
    """What it is good for, in one line."""
    config_class: ClassVar[type[Any]] = NoSettings
    """Frozen dataclass of its settings; its fields are the strategy's options, under these names everywhere."""
    weighs_several: ClassVar[bool] = False
    """Whether it minimises several metrics together; others minimise the first they are given."""
    budget_told: ClassVar[str] = ""
    """How its settings make the number of evaluations that it asks for at most, for messages: ``{each} x {rounds}``."""

    @classmethod
    def made(
        cls,
        space: SearchSpace,
        constraints: Sequence[Constraint],
        config: Any,
        objectives: Sequence[str],
        **common: Any,
    ) -> Any:
        """The strategy as a command line or a host makes it.

        Args:
            config: of :attr:`config_class`.
            objectives: metrics to minimise; where it does not weigh several, the first.
            common: ``seed`` and ``max_tries`` where they are given.

        Raises:
            ConfigError: fewer objectives than it needs, or a setting that the space does not allow.
        """
        return cls(space, constraints, config, metric=objectives[0], **common)  # type: ignore[call-arg]

    @classmethod
    def suited(cls, config: Any, given: Mapping[str, Any], space: SearchSpace) -> Any:
        """The settings, those that are not ``given`` as they suit a space of another project, each of whose layers has
        genes of its own."""
        return config
