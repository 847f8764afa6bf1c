"""Random search under constraints: the baseline every other strategy has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint
from nas_core.search.strategies.base import Strategy
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

__all__ = ["RandomConfig", "RandomSearch"]


@dataclass(frozen=True, kw_only=True)
class RandomConfig:
    """Settings of random search.

    Raises:
        ConfigError: a value out of range.
    """

    evaluations: int = 3025
    """Architectures asked for; the default is what HAT's evolution needs at most."""
    batch: int = 125
    """Architectures drawn at once."""

    def __post_init__(self) -> None:
        for name in ("evaluations", "batch"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value!r}; expected a whole number of at least 1")


class RandomSearch(Strategy):
    """Distinct feasible architectures, each gene drawn uniformly, without regard to results."""

    barrier: ClassVar[bool] = False

    def __init__(
        self,
        space: SearchSpace,
        constraints: Sequence[Constraint] = (),
        config: RandomConfig | None = None,
        *,
        seed: int = 0,
        metric: str = "loss",
        max_tries: int = 20_000,
    ) -> None:
        super().__init__(space, constraints, seed=seed, metric=metric, max_tries=max_tries)
        self.config = config or RandomConfig()

    @property
    def budget(self) -> int:
        return self.config.evaluations

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), **asdict(self.config)}

    def _propose(self) -> Rows | None:
        missing = self.config.evaluations - len(self._members)
        if missing <= 0:
            return None
        return self.proposals.initial(self.rng, min(missing, self.config.batch), set(self._members))
