"""How much each part of a predictor counts, and how far off it is: learned from graphs that the parts did not see.

A part is a way to predict: networks, Gaussian processes, boosted trees. Each is asked about every training graph by a
model of its own that was fitted without that graph (out-of-fold predictions, Wolpert 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.targets import TargetScale

Array = NDArray[np.float64]
FOLDS, MORE_FOLDS, FEW = 5, 10, 60
"""Folds, and how many there are of few graphs."""
PRIOR_GRAPHS = 60.0
"""Graphs that the shares one starts from weigh as much as."""
SURE = 1e-6
"""Least deviation, in units of what is learned."""
WITHIN = 0.683
"""Share of a normal distribution within one deviation."""
NEARER = 0.85
"""How much the errors within one deviation count beside those within two, which few graphs tell."""
GRID = np.linspace(0.0, 4.0, 41)


def fold_of(graphs: Graphs, seed: int, folds: int | None = None) -> NDArray[np.int64]:
    """``(G,)`` the fold of each graph; equal graphs are in one.

    Args:
        folds: how many; default: :data:`FOLDS`, of few graphs more.
    """
    of = graphs.distinct()[1]
    distinct = int(of.max()) + 1
    count = folds or (MORE_FOLDS if distinct <= FEW else FOLDS)
    return (np.random.default_rng([seed, 5]).permutation(distinct) % min(count, distinct))[of]


@dataclass(frozen=True)
class Mixture:
    """Shares of the parts, and the deviation of what they say together."""

    shares: tuple[float, ...]
    """How much each part counts; their sum is 1"""
    noise: float
    """Deviation where all parts agree, in units of what is learned"""
    disagreement: float
    """How many times the deviation between the parts is added to it, in squares"""
    factor: float
    """By which deviations in units of the targets are multiplied, so that as many graphs lie within as should"""

    @classmethod
    def fit(
        cls, held_out: Array, learned: Array, targets: Array, scale: TargetScale, prior: Sequence[float]
    ) -> Mixture:
        """From what the parts said of graphs that they had not seen.

        Args:
            held_out: ``(P, G)`` out-of-fold predictions in units of what is learned.
            learned: ``(G,)`` what they should have said.
            targets: ``(G,)`` the same in units of the targets.
            scale: between both.
            prior: ``(P,)`` shares to start from.
        """
        shares = _learned_shares(held_out, learned, np.asarray(prior, np.float64))
        mean, between = shares @ held_out, _between(held_out, shares)
        noise, disagreement = _likeliest(learned - mean, between)
        mixture = cls(tuple(shares.tolist()), noise, disagreement, 1.0)
        predicted, spread = mixture.combine(held_out, scale)
        return cls(mixture.shares, noise, disagreement, _factor(np.abs(targets - predicted) / spread))

    def combine(self, rows: Array, scale: TargetScale) -> tuple[Array, Array]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)`` in units of the targets, from what the parts say,
        ``(P, B)`` in units of what is learned."""
        mean, deviation = self._learned(rows)
        wide = scale.restore(mean + deviation) - scale.restore(mean - deviation)
        return scale.restore(mean), self.factor * wide / 2

    def quantiles(self, rows: Array, scale: TargetScale, levels: Sequence[float]) -> Array:
        """``(levels, B)`` values below which a graph's lies with these probabilities, in units of the targets."""
        mean, deviation = self._learned(rows)
        return np.stack([scale.restore(mean + ndtri(level) * self.factor * deviation) for level in levels])

    def _learned(self, rows: Array) -> tuple[Array, Array]:
        shares = np.array(self.shares)
        variance = self.noise**2 + self.disagreement**2 * _between(rows, shares)
        return shares @ rows, np.sqrt(variance)

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {**vars(self), "shares": list(self.shares)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], parts: int) -> Mixture:
        """Invert :meth:`to_json`, of so many parts."""
        shares = tuple(data["shares"])
        if len(shares) != parts:
            raise DataError(f"{len(shares)} shares of {parts} parts of a predictor")
        return cls(shares, *(float(data[name]) for name in ("noise", "disagreement", "factor")))


def _learned_shares(held_out: Array, learned: Array, prior: Array) -> Array:
    """Shares ``(P,)``, none below 0 and together 1, of least squared error on graphs that the parts had not seen, drawn
    towards the prior as if :data:`PRIOR_GRAPHS` more had been best predicted by it."""
    from scipy.optimize import nnls

    if len(held_out) == 1:
        return np.ones(1)
    weight = np.sqrt(PRIOR_GRAPHS * max(float(held_out.var(0).mean()), SURE**2))
    large = 1e3 * float(np.abs(held_out).sum() + 1)
    rows = np.concatenate([held_out.T, weight * np.eye(len(prior)), large * np.ones((1, len(prior)))])
    found, _ = nnls(rows, np.concatenate([learned, weight * prior, [large]]))
    return np.asarray(found / found.sum())


def _between(rows: Array, shares: Array) -> Array:
    """``(B,)`` variance between the parts, each counted by its share."""
    return np.asarray(shares @ (rows - shares @ rows) ** 2)


def _likeliest(errors: Array, between: Array) -> tuple[float, float]:
    """Noise and factor of disagreement of largest likelihood of normally distributed errors."""
    best, found = np.inf, (0.0, 0.0)
    for disagreement in GRID:
        added = disagreement**2 * between
        noise2 = float(np.mean(errors**2))
        for _ in range(30):  # the noise that fits, given the rest
            weights = 1 / (noise2 + added + SURE**2) ** 2
            noise2 = max(float((weights * (errors**2 - added)).sum() / weights.sum()), SURE**2)
        variance = noise2 + added
        unlikely = float((errors**2 / variance + np.log(variance)).sum())
        if unlikely < best:
            best, found = unlikely, (float(np.sqrt(noise2)), float(disagreement))
    return found


def _factor(errors: Array) -> float:
    """By which deviations grow so that of these errors, in deviations, as many lie within one and two as should."""
    count = len(errors)
    one = np.quantile(errors, min(WITHIN * (count + 1) / count, 1.0))
    two = np.quantile(errors, min(0.955 * (count + 1) / count, 1.0)) / 2
    return float(max(one**NEARER * two ** (1 - NEARER), SURE))
