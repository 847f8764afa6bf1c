"""One estimate of standalone quality, from inherited metrics and sizes, fitted to a few trained networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import ConfigError, DataError
from nas_core.predictor.metrics import kendall_tau
from nas_core.predictor.targets import checked_levels
from nas_core.search.calibration.learned import FEWEST, Learned
from nas_core.search.calibration.parts import PARTS
from nas_core.search.calibration.sizes import Sizes
from nas_core.search.metrics import metric_named
from nas_core.space import Architecture, SearchSpace

Array = NDArray[np.float64]
RISING = ("bleu", "accuracy", "acc", "top1", "top5", "score", "f1")
FALLING = ("loss", "ppl", "perplexity", "error", "nll")


def larger_is_better(metric: str, option: str = "larger-is-better") -> bool:
    """Whether larger values of a metric are better, by its name: of ``test_bleu`` they are, of ``valid_loss`` not.

    Args:
        option: what says it on the command line, for the message.

    Raises:
        ConfigError: the name does not tell.
    """
    if (known := metric_named(metric).larger_is_better) is not None:
        return known
    words = set(metric.casefold().replace("-", "_").replace(".", "_").split("_"))
    rises, falls = bool(words & set(RISING)), bool(words & set(FALLING))
    if rises == falls:
        raise ConfigError(
            f"the name {metric!r} does not tell whether larger values are better; say --{option} or --no-{option}"
        )
    return rises


@dataclass(frozen=True)
class Quality:
    """How good a calibration is, from networks left out one by one, each judged by one fitted to all others."""

    tau: float
    """Kendall's tau between estimates and measured values"""
    error: float
    """Mean absolute error, in the metric's units"""
    inherited_tau: float
    """Kendall's tau of the inherited metric alone"""
    within_one: float
    """Share of the networks within one standard deviation; 0.68 of them should be"""
    within_two: float
    """Share within two; 0.95 should be"""


@dataclass
class Calibration:
    """An estimate of what networks reach when trained on their own, from what a supernet says and from their sizes.

    Three parts estimate it: a straight line through the inherited metric, ridge regression on sizes, and ridge
    regression on both. They are averaged with weights inverse to their squared errors on networks that were left out
    (Bates and Granger 1969; drawn towards equal ones as if three more networks had been estimated alike by all),
    refined as those of :class:`nas_core.predictor.NNFormerPredictor` are: with few networks
    near that, and a part that proves useless loses its say. The spread is learned from the same left-out errors and
    grows where the parts disagree. Without any trained network the estimate is the inherited metric itself, the mean
    of those of several supernets, and there is no spread.

    Example:
        >>> calibration = Calibration(space, "test_bleu").fit(architectures, inherited_losses, bleu)
        >>> mean, spread = calibration.predict_with_spread(candidates, their_losses)

    Raises:
        ConfigError: the name of a metric does not tell whether larger is better, and it is not said.
    """

    fewest: ClassVar[int] = FEWEST
    """Trained networks without which nothing is fitted; none at all is allowed too"""
    space: SearchSpace
    metric: str
    """What is estimated: the standalone metric"""
    larger: bool | None = None
    """Whether larger values of it are better; None: as its name says, see :func:`larger_is_better`"""
    inherited_metric: str = "loss"
    """What supernets are asked for"""
    inherited_larger: bool | None = None
    """The same of the inherited metric"""
    info: Mapping[str, Any] = field(default_factory=dict)
    """What else belongs to it, as plain data: fingerprints of the supernets, on which data they were evaluated"""
    trained: Mapping[Architecture, float] = field(default_factory=dict, init=False)
    """The networks it was fitted to, with their standalone metric"""
    learned: Learned | None = field(default=None, init=False, repr=False)
    """What it learned from them; None of none"""

    def __post_init__(self) -> None:
        if self.larger is None:
            self.larger = larger_is_better(self.metric)
        if self.inherited_larger is None:
            self.inherited_larger = larger_is_better(self.inherited_metric, "inherited-larger-is-better")

    def fit(self, architectures: Sequence[Architecture], inherited: ArrayLike, standalone: ArrayLike) -> Calibration:
        """Learn from trained networks; with none, the estimate is the inherited metric.

        Args:
            architectures: ``n`` of them, each once, 3 or more; 5 to 15 are what this is made for.
            inherited: ``(n,)`` or ``(n, S)`` inherited metrics of one or of S supernets.
            standalone: ``(n,)`` what the networks reached, trained on their own.

        Raises:
            DataError: one or two networks, one of them twice, no variation, or what is no number.
            ArchitectureError: one lies outside the space.
        """
        networks = [self.space.validate(one) for one in architectures]
        targets = _numbers(standalone, (len(networks),), self.metric)
        if not networks:
            self.trained, self.learned = {}, None
            return self
        known = _columns(inherited, len(networks), self.inherited_metric)
        self.require_enough(len(networks))
        if len(set(networks)) < len(networks):
            twice = next(one for place, one in enumerate(networks) if one in networks[:place])
            raise DataError(f"network {twice.key} is given twice; keep one of its results")
        if np.ptp(targets) <= 1e-12 * max(1.0, float(np.abs(targets).max())):
            raise DataError(f"all {len(networks)} networks have {self.metric} {targets[0]:g}; nothing can be learned")
        self.trained = dict(zip(networks, targets.tolist(), strict=True))
        self.learned = Learned.of(self._oriented(known), self.sizes_of(networks), self._sign * targets)
        return self

    @staticmethod
    def require_enough(networks: int) -> None:
        """Insist that so many trained networks are enough.

        Raises:
            DataError: they are less than :attr:`fewest`.
        """
        if networks < FEWEST:
            raise DataError(
                f"{networks} trained network{'s' * (networks != 1)}; a calibration needs at least {FEWEST}, better 5 to"
                " 15: train more of them, or give none to search by the inherited metric"
            )

    @property
    def fitted(self) -> bool:
        """Whether it has learned from trained networks; else it hands the inherited metric on."""
        return self.learned is not None

    @property
    def supernets(self) -> int | None:
        """From how many supernets inherited metrics are expected; None before it was fitted."""
        return None if self.learned is None else self.learned.inherited.shape[1]

    @property
    def shares(self) -> dict[str, float]:
        """How much each part counts; the inherited metric alone before it was fitted."""
        mixed = (1.0,) if self.learned is None else self.learned.mixture.shares
        return dict(zip(PARTS, mixed, strict=False))

    def predict(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> Array:
        """``(B,)`` estimates in units of the standalone metric, of the inherited one before it was fitted.

        Args:
            inherited: ``(B,)`` or ``(B, S)``, as :meth:`fit` was given.

        Raises:
            DataError: another number of supernets than it was fitted to, or what is no number.
        """
        if self.learned is None:
            return np.asarray(_columns(inherited, len(architectures), self.inherited_metric).mean(1))
        return self.predict_with_spread(architectures, inherited)[0]

    def predict_with_spread(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> tuple[Array, Array]:
        """Estimates ``(B,)`` and their standard deviations ``(B,)``; arguments and errors as of :meth:`predict`.

        Raises:
            ConfigError: it was fitted to no network, and has no spread.
        """
        learned, known = self._checked(inherited, len(architectures))
        mean, spread = learned.estimate(known, self.sizes_of(architectures))
        return self._sign * mean, spread

    def predict_quantiles(
        self, architectures: Sequence[Architecture], inherited: ArrayLike, levels: Sequence[float]
    ) -> Array:
        """``(L, B)`` values below which the standalone metric lies with these probabilities, where errors are normally
        distributed; errors as of :meth:`predict_with_spread`."""
        wanted = checked_levels(levels)
        learned, known = self._checked(inherited, len(architectures))
        rows = learned.rows(known, self.sizes_of(architectures))
        asked = wanted if self.larger else 1 - wanted
        return self._sign * learned.mixture.quantiles(rows, learned.scale, asked.tolist())

    def predict_parts(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> dict[str, Array]:
        """What each part estimates by itself, ``(B,)`` each; errors as of :meth:`predict_with_spread`."""
        learned, known = self._checked(inherited, len(architectures))
        rows = learned.parts.predict(known, self.sizes_of(architectures))
        return dict(zip(PARTS, self._sign * rows, strict=True))

    def _checked(self, inherited: ArrayLike, count: int) -> tuple[Learned, Array]:
        if self.learned is None:
            raise ConfigError("the calibration was fitted to no trained network and has no spread; fit it first")
        known = _columns(inherited, count, self.inherited_metric)
        if known.shape[1] != self.supernets:
            raise DataError(
                f"inherited metrics of {known.shape[1]} supernets; the calibration was fitted to {self.supernets}"
            )
        return self.learned, self._oriented(known)

    def quality(self) -> Quality:
        """Judge it on networks left out one by one; what is left out takes no part in weights and spread either.

        Raises:
            ConfigError: it was fitted to less than 4 networks.
        """
        count = len(self.trained)
        if self.learned is None or count <= FEWEST:
            raise ConfigError(f"nothing to judge it by; fit it to at least {FEWEST + 1} trained networks first")
        known, sizes = self.learned.inherited, self.learned.sizes
        wanted = self._sign * np.array(list(self.trained.values()))
        mean, spread = np.empty(count), np.empty(count)
        for place in range(count):
            kept = np.arange(count) != place
            without = Learned.of(known[kept], sizes[kept], wanted[kept])
            mean[place], spread[place] = (each[0] for each in without.estimate(known[[place]], sizes[[place]]))
        off = np.abs(mean - wanted)
        alone = self.learned.parts.inherited.columns(known)[0][:, 0]
        return Quality(
            float(kendall_tau(mean, wanted)), float(off.mean()), float(kendall_tau(alone, wanted)),
            float((off <= spread).mean()), float((off <= 2 * spread).mean()),
        )  # fmt: skip

    def sizes_of(self, architectures: Sequence[Architecture]) -> Array:
        """``(B, C)`` columns of sizes, see :class:`~nas_core.search.calibration.sizes.Sizes`."""
        return _sizes(self.space).columns(architectures)

    @property
    def _sign(self) -> float:
        return 1.0 if self.larger else -1.0

    def _oriented(self, inherited: Array) -> Array:
        return inherited if self.inherited_larger else -inherited


@lru_cache(maxsize=8)
def _sizes(space: SearchSpace) -> Sizes:
    """Kept for calibrations of the same space: to scale its columns takes longer than a fit."""
    return Sizes(space)


def _columns(inherited: ArrayLike, count: int, name: str) -> Array:
    values = np.asarray(inherited, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    return _numbers(values, (count, values.shape[-1] if values.ndim == 2 else 1), f"inherited {name}")


def _numbers(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    numbers = np.asarray(values, np.float64)
    if numbers.shape != shape:
        raise DataError(f"{name} has shape {numbers.shape} for {shape[0]} networks; expected {shape}")
    if not np.isfinite(numbers).all():
        wrong = int(np.flatnonzero(~np.isfinite(numbers.reshape(shape[0], -1)).all(1))[0])
        raise DataError(f"{name} of network {wrong} is no finite number; leave the network out")
    return numbers
