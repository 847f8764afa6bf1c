"""Random search within limits, the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from nas_core.checks import Range, check_fields
from nas_core.search.strategies.base import Strategy
from nas_core.space.slots import Rows


@dataclass(frozen=True, kw_only=True)
class RandomConfig:
    """Settings of random search."""

    evaluations: int = 3025
    """Number of architectures; default: largest number that HAT's evolution evaluates."""
    batch: int = 125
    """Number of architectures drawn at once."""

    def __post_init__(self) -> None:
        check_fields(self, ranges={"evaluations": Range(1), "batch": Range(1)})


class RandomSearch(Strategy):
    """Random search: different architectures within the limits."""

    config: RandomConfig
    barrier: ClassVar[bool] = False
    name: ClassVar[str] = "random"
    purpose: ClassVar[str] = "random architectures, the baseline under the same limits"
    config_class: ClassVar[type[Any]] = RandomConfig
    budget_formula: ClassVar[str] = "{evaluations}"

    @property
    def budget(self) -> int:
        return self.config.evaluations

    def _propose(self) -> Rows | None:
        missing = self.config.evaluations - len(self._members)
        if missing <= 0:
            return None
        return self.proposals.initial(self.rng, min(missing, self.config.batch), set(self._members))
