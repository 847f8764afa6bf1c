"""Estimation of a network's quality after training from scratch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.predictor.metrics import kendall_tau
from nas_core.search.calibration.components import COMPONENTS, MIN_NETWORKS, Inputs, Learned, take
from nas_core.search.calibration.sizes import Sizes
from nas_core.search.metrics import metric_named
from nas_core.space import Architecture, SearchSpace

Array = NDArray[np.float64]
RISING = ("bleu", "accuracy", "acc", "top1", "top5", "score", "f1")
FALLING = ("loss", "ppl", "perplexity", "error", "nll")


def larger_is_better(metric: str, option: str = "larger-is-better") -> bool:
    """Return True if the metric's name says that larger values are better (``test_bleu``: True, ``valid_loss``: False).

    Raises:
        ConfigError: the name is unknown.
    """
    if (rises_by_name := metric_named(metric).larger_is_better) is not None:
        return rises_by_name
    words = set(metric.casefold().replace("-", "_").replace(".", "_").split("_"))
    rises, falls = bool(words & set(RISING)), bool(words & set(FALLING))
    if rises == falls:
        raise ConfigError(
            f"it is unknown whether larger values of metric {metric!r} are better; give --{option} or --no-{option}"
        )
    return rises


@dataclass(frozen=True)
class Quality:
    """Leave-one-out errors of a calibration."""

    tau: float
    """Kendall's tau between estimates and measurements"""
    error: float
    """Mean absolute error, in the metric's units"""
    inherited_tau: float
    """Kendall's tau between the supernet's metric and measurements"""
    within_one: float
    """Fraction of errors within one standard deviation; about 0.68 is expected"""
    within_two: float
    """Fraction of errors within two standard deviations; about 0.95 is expected"""


@dataclass
class Calibration:
    """Estimate of a network's quality after training from scratch, from its metric with supernet weights and its size.

    It is a weighted mean of a line through the supernet's metric (``inherited``), ridge regression on ``sizes``, and
    ridge regression on sums of genes and the metrics (``both``). Weights are inverse to squared leave-one-out errors
    (Bates and Granger 1969), shrunk towards equal weights. These errors, shrunk towards a third of the standard
    deviation of ``standalone``, and the disagreement of the three models determine the standard deviation.

    Example:
        >>> calibration = Calibration(space, "test_bleu").fit(architectures, inherited_losses, bleu)
        >>> mean, std = calibration.predict_with_std(candidates, their_losses)

    Raises:
        ConfigError: ``larger`` is None and the name of the metric is unknown.
    """

    min_networks: ClassVar[int] = MIN_NETWORKS
    space: SearchSpace
    metric: str
    larger: bool | None = None
    """True if larger values are better; None: see :func:`larger_is_better`"""
    inherited_metric: str = "loss"
    """Name of the supernets' metric"""
    inherited_larger: bool | None = None
    """True if larger values of ``inherited_metric`` are better; None: see :func:`larger_is_better`"""
    info: Mapping[str, Any] = field(default_factory=dict)
    """SHA-256 of the supernets, data of their evaluation"""
    trained: Mapping[Architecture, float] = field(default_factory=dict, init=False)
    inherited: Array = field(default_factory=lambda: np.zeros((0, 1)), init=False, repr=False)
    """Supernet metrics ``(n, S)`` of the trained networks"""
    learned: Learned | None = field(default=None, init=False, repr=False)
    """Fitted models; None before :meth:`fit`"""

    def __post_init__(self) -> None:
        if self.larger is None:
            self.larger = larger_is_better(self.metric)
        if self.inherited_larger is None:
            self.inherited_larger = larger_is_better(self.inherited_metric, "inherited-larger-is-better")

    def fit(self, architectures: Sequence[Architecture], inherited: ArrayLike, standalone: ArrayLike) -> Calibration:
        """Fit to trained networks.

        Args:
            architectures: n different networks, at least 3, usually 5 to 15.
            inherited: metric with supernet weights ``(n,)``, or ``(n, S)`` for S supernets.
            standalone: metric after training from scratch ``(n,)``.

        Raises:
            DataError: there are fewer than 3 networks, all results are equal, or a value is not finite.
        """
        networks = [self.space.validate(architecture) for architecture in architectures]
        targets, columns = np.asarray(standalone, np.float64), _columns(inherited)
        self.require_enough(len(networks))
        finite = np.isfinite(targets) & np.isfinite(columns).all(1)
        if not finite.all():
            raise DataError(
                f"network {networks[int(finite.argmin())].key} has a metric that is NaN or infinite; leave the network"
                " out"
            )
        if np.ptp(targets) <= 1e-12 * max(1.0, float(np.abs(targets).max())):
            raise DataError(
                f"all {len(networks)} networks have {self.metric} {targets[0]:g}; give networks with different results"
            )
        self.trained, self.inherited = dict(zip(networks, targets.tolist(), strict=True)), columns
        self.learned = Learned.of(self._inputs(networks, columns), self._sign * targets)
        return self

    @staticmethod
    def require_enough(networks: int) -> None:
        if networks < MIN_NETWORKS:
            raise DataError(
                f"got {networks} trained network{'s' * (networks != 1)}; a calibration needs at least {MIN_NETWORKS},"
                " better 5 to 15; train more"
            )

    @property
    def shares(self) -> dict[str, float]:
        """Linear model (``inherited``, ``sizes``, ``both``) -> weight in the estimate."""
        return dict(zip(COMPONENTS, self._fitted().mixture.shares, strict=True))

    def predict(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> Array:
        """Return estimates ``(B,)`` of the metric after training from scratch.

        Args:
            inherited: metric with supernet weights ``(B,)`` or ``(B, S)``.
        """
        return self.predict_with_std(architectures, inherited)[0]

    def predict_with_std(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> tuple[Array, Array]:
        """Return estimates ``(B,)`` and standard deviations ``(B,)``.

        Raises:
            ConfigError: the calibration is not fitted.
        """
        mean, std = self._fitted().estimate(self._inputs(architectures, _columns(inherited)))
        return self._sign * mean, std

    def predict_components(self, architectures: Sequence[Architecture], inherited: ArrayLike) -> dict[str, Array]:
        """Return linear model -> estimates ``(B,)``."""
        rows = self._fitted().components.predict(self._inputs(architectures, _columns(inherited)))
        return dict(zip(COMPONENTS, self._sign * rows, strict=True))

    def _fitted(self) -> Learned:
        if self.learned is None:
            raise ConfigError("the calibration is not fitted; call fit with trained networks first")
        return self.learned

    def quality(self) -> Quality:
        """Return the errors of estimates for each network by a calibration fitted to the others.

        Raises:
            ConfigError: the calibration was fitted to fewer than 4 networks.
        """
        count = len(self.trained)
        if self.learned is None or count <= MIN_NETWORKS:
            raise ConfigError(
                f"the calibration was fitted to {count} networks; its errors need at least {MIN_NETWORKS + 1}:"
                " train more networks"
            )
        inputs = self._inputs(list(self.trained), self.inherited)
        targets = self._sign * np.array(list(self.trained.values()))
        mean, std = np.empty(count), np.empty(count)
        for index in range(count):
            others = np.arange(count) != index
            learned = Learned.of(take(inputs, others), targets[others])
            mean[index], std[index] = (values[0] for values in learned.estimate(take(inputs, [index])))
        errors = np.abs(mean - targets)
        inherited = self.learned.components.mean(inputs[0])[:, 0]
        return Quality(
            float(kendall_tau(mean, targets)), float(errors.mean()), float(kendall_tau(inherited, targets)),
            float((errors <= std).mean()), float((errors <= 2 * std).mean()),
        )  # fmt: skip

    @property
    def _sign(self) -> float:
        return 1.0 if self.larger else -1.0

    def _inputs(self, architectures: Sequence[Architecture], inherited: Array) -> Inputs:
        sizes = _sizes(self.space)
        return (inherited if self.inherited_larger else -inherited), *sizes.columns(architectures)


@lru_cache(maxsize=8)
def _sizes(space: SearchSpace) -> Sizes:
    return Sizes(space)  # cached: its scale takes longer than a fit


def _columns(inherited: ArrayLike) -> Array:
    values = np.asarray(inherited, np.float64)
    return values[:, None] if values.ndim == 1 else values


def calibrated_name(calibration: Calibration) -> str:
    """Return the name of the estimate, such as ``calibrated_test_bleu``."""
    return f"calibrated_{calibration.metric}"


def objective_of(calibration: Calibration) -> str:
    """Return the metric to minimise: the estimate's name, after a minus if larger values are better."""
    return f"-{calibrated_name(calibration)}" if calibration.larger else calibrated_name(calibration)


def calibrated_metrics(
    calibration: Calibration, architecture: Architecture, inherited: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """Return estimate, standard deviation and metric to minimise; empty if a supernet's metric is not finite.

    Args:
        inherited: metrics of the architecture from each supernet.
    """
    values = [[inherited_value(metrics, calibration.inherited_metric) for metrics in inherited]]
    if not all(map(math.isfinite, values[0])):
        return {}
    name, objective = calibrated_name(calibration), objective_of(calibration)
    mean, std = (float(column[0]) for column in calibration.predict_with_std([architecture], values))
    return {objective: -mean if objective != name else mean, name: mean, f"{name}_std": std}


def inherited_value(metrics: Mapping[str, float], metric: str) -> float:
    if metric not in metrics:
        raise unknown_choice("metric of the supernet", metric, list(metrics))
    return float(metrics[metric])
