"""Early stopping of supernet training by the stability of subnet rankings.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021, as in its code. Training
ends when Kendall's tau between the rankings of two epochs exceeds a threshold, or rises more than ``patience`` times in
a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, DataError
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class StabilityConfig:
    """Settings of :class:`Stability`. Defaults are those of RankNAS's code."""

    architectures: int = 200
    """Number of ranked architectures. RankNAS uses 100 (IWSLT'14), 150 (WikiText-103) and 200 (WMT'14)."""
    tau: float = 0.9
    """Stop if Kendall's tau between two epochs is above this value."""
    patience: int = 5
    """Stop if Kendall's tau rises more than this number of times in a row."""
    seed: int = 0
    """Seed of the sampled architectures."""

    def __post_init__(self) -> None:
        if self.architectures < 2 or self.patience < 1 or not 0 < self.tau <= 1:
            raise ConfigError(
                f"stability has {self.architectures} architectures, tau {self.tau} and patience {self.patience};"
                " expected architectures >= 2, 0 < tau <= 1 and patience >= 1"
            )


class Stability:
    """Comparison of the ranking of fixed architectures between epochs."""

    def __init__(self, space: SearchSpace, config: StabilityConfig | None = None) -> None:
        self.config = config or StabilityConfig()
        count = min(self.config.architectures, space.cardinality())
        if count < 2:
            raise ConfigError(f"space {space.name!r} has one architecture; expected at least two for a ranking")
        rng, drawn = np.random.default_rng(self.config.seed), dict[Architecture, None]()
        for _ in range(100):  # the last architectures of a small space are drawn rarely
            drawn.update(dict.fromkeys(space.architectures(space.sample_rows(rng, count))))
            if len(drawn) >= count:
                break
        self.architectures: list[Architecture] = list(drawn)[:count]
        """Distinct architectures."""
        self.taus: list[float] = []
        """Kendall's tau of each epoch with the previous one."""
        self._losses: list[float] = []

    def update(self, losses: Sequence[float]) -> float | None:
        """Add the losses ``(n,)`` of :attr:`architectures` after an epoch.

        Returns:
            Kendall's tau with the previous epoch (0 if all losses are equal), or None in the first epoch.
        """
        values = [float(loss) for loss in losses]
        if not np.isfinite(values).all():
            count = len(values) - np.isfinite(values).sum()
            raise DataError(f"{count} of {len(values)} losses are NaN or infinite; lower the learning rate")

        before, self._losses = self._losses, values
        if not before:
            return None
        from scipy.stats import kendalltau  # takes long to import

        self.taus.append(float(np.nan_to_num(kendalltau(before, values).statistic)))
        return self.taus[-1]

    @property
    def rises(self) -> int:
        """Number of consecutive rises of Kendall's tau."""
        count = 0
        for later, earlier in zip(self.taus[::-1], self.taus[-2::-1], strict=False):
            if later <= earlier:
                break
            count += 1
        return count

    @property
    def stable(self) -> bool:
        """True if training may stop by :class:`StabilityConfig`."""
        return bool(self.taus) and (self.taus[-1] > self.config.tau or self.rises > self.config.patience)

    def state_dict(self) -> dict[str, Any]:
        return {"losses": list(self._losses), "taus": list(self.taus)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        losses, taus = list(state["losses"]), list(state["taus"])
        if losses and len(losses) != len(self.architectures):
            raise DataError(
                f"the saved state has {len(losses)} losses, expected {len(self.architectures)}; use the same space and"
                " number of architectures"
            )
        self._losses, self.taus = losses, taus
