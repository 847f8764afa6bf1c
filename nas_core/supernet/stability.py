"""When a supernet ranks its subnets as it will: the stop of RankNAS's supernet training.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021, as in its released code: a
fixed list of architectures is evaluated after each epoch, and training ends when Kendall's tau between the losses of
two epochs in a row is above a threshold, or has risen more than ``patience`` times in a row.
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
    """When to stop; the defaults are those of RankNAS's released code.

    Raises:
        ConfigError: a value out of range.
    """

    architectures: int = 200
    """Architectures whose losses are ranked; RankNAS took 100 (IWSLT'14), 150 (WikiText-103), 200 (WMT'14)."""
    tau: float = 0.9
    """Stop when tau between two epochs is above this."""
    patience: int = 5
    """Stop when tau has risen more often than this in a row."""
    seed: int = 0
    """Seed of the list."""

    def __post_init__(self) -> None:
        if self.architectures < 2 or self.patience < 1 or not 0 < self.tau <= 1:
            raise ConfigError(
                f"stability: {self.architectures} architectures, tau {self.tau}, patience {self.patience}; expected at"
                " least 2, above 0 and up to 1, at least 1"
            )


class Stability:
    """Compares the ranking of a fixed list of architectures between epochs; computes no loss itself.

    Args:
        space: the supernet's.
        config: when to stop.
    """

    def __init__(self, space: SearchSpace, config: StabilityConfig | None = None) -> None:
        self.config = config or StabilityConfig()
        count = min(self.config.architectures, space.cardinality())
        if count < 2:
            raise ConfigError(f"space {space.name!r} holds one architecture; there is no ranking that could be stable")
        rng, found = np.random.default_rng(self.config.seed), dict[Architecture, None]()
        for _ in range(100):  # of a small space all may be wanted, and the last ones are drawn rarely
            found.update(dict.fromkeys(space.architectures(space.sample_rows(rng, count))))
            if len(found) >= count:
                break
        self.architectures: list[Architecture] = list(found)[:count]
        """The fixed list, distinct; all of a space that holds no more."""
        self.taus: list[float] = []
        """Kendall's tau between each epoch and the one before, from the second epoch on."""
        self._losses: list[float] = []

    def update(self, losses: Sequence[float]) -> float | None:
        """The losses of :attr:`architectures` after an epoch ``(n,)``; tau with the epoch before, None for the first.

        Tau is 0 where all losses of an epoch are equal.

        Raises:
            DataError: not one finite loss per architecture.
        """
        values = [float(loss) for loss in losses]
        if len(values) != len(self.architectures) or not np.isfinite(values).all():
            raise DataError(
                f"{len(values)} losses, {int(np.isfinite(values).sum())} of them finite; expected one of each of the"
                f" {len(self.architectures)} architectures"
            )
        before, self._losses = self._losses, values
        if not before:
            return None
        from scipy.stats import kendalltau  # takes as long to import as torch

        self.taus.append(float(np.nan_to_num(kendalltau(before, values).statistic)))
        return self.taus[-1]

    @property
    def rises(self) -> int:
        """How many times in a row tau has risen."""
        count = 0
        for later, earlier in zip(self.taus[::-1], self.taus[-2::-1], strict=False):
            if later <= earlier:
                break
            count += 1
        return count

    @property
    def stable(self) -> bool:
        """Whether training may stop."""
        return bool(self.taus) and (self.taus[-1] > self.config.tau or self.rises > self.config.patience)

    def state_dict(self) -> dict[str, Any]:
        """Plain data; with the same space and settings the comparison continues."""
        return {"losses": list(self._losses), "taus": list(self.taus)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the state of an earlier run.

        Raises:
            DataError: not a state, or that of another number of architectures.
        """
        try:
            losses, taus = ([float(value) for value in state[name]] for name in ("losses", "taus"))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not the state of a stability stop ({error}); train without it") from None
        if losses and len(losses) != len(self.architectures):
            raise DataError(
                f"the state has {len(losses)} losses, expected {len(self.architectures)}; give the same space and"
                " number of architectures"
            )
        self._losses, self.taus = losses, taus
