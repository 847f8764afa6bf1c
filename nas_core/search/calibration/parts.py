"""The three ways in which a calibration estimates quality, each a linear model that few networks can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PARTS = ("inherited", "sizes", "both")
"""A straight line through the inherited metric; ridge on sizes; ridge on sizes beside that straight line."""
PENALTIES = np.logspace(-1.5, 1, 11)
"""In mean squares of all columns together, which are about 1."""
FREE = 10.0
"""By how much a column is scaled that the penalty should not hold back."""


@dataclass(frozen=True)
class Line:
    """A linear function of some columns."""

    weights: Array
    """``(C,)``"""
    offset: float

    def of(self, columns: Array) -> Array:
        """``(B,)`` values at columns ``(B, C)``."""
        return columns @ self.weights + self.offset

    @classmethod
    def rising(cls, column: Array, targets: Array) -> Line:
        """Least squares through one column ``(n, 1)``, with a slope of at least 0."""
        x, y = column[:, 0] - column.mean(), targets - targets.mean()
        slope = max(float(x @ y) / float(x @ x), 0.0) if float(x @ x) > 0 else 0.0
        return cls(np.array([slope]), float(targets.mean() - slope * column.mean()))

    @classmethod
    def ridge(cls, columns: Array, targets: Array) -> Line:
        """Ridge regression whose penalty is not chosen but averaged over, each by its marginal likelihood under a
        normal prior of the weights (MacKay 1992, Bayesian Interpolation): a choice made by few networks is one of
        chance. Closed form by one singular value decomposition."""
        middle, mean = columns.mean(0), float(targets.mean())
        basis, singular, rows = np.linalg.svd(columns - middle, full_matrices=False)
        off = targets - mean
        inner, squares = basis.T @ off, singular**2
        rest = max(float(off @ off - inner @ inner), 0.0)
        likely, found = [], []
        for penalty in PENALTIES:
            misfit = float((inner**2 * penalty / (squares + penalty)).sum()) + rest
            likely.append(-0.5 * np.log1p(squares / penalty).sum() - 0.5 * (len(off) - 1) * np.log(max(misfit, 1e-300)))
            found.append(rows.T @ (singular / (squares + penalty) * inner))
        shares = np.exp(np.array(likely) - max(likely))
        weights = shares / shares.sum() @ np.array(found)
        return cls(weights, mean - float(middle @ weights))


@dataclass(frozen=True)
class Inherited:
    """Inherited metrics of one or several supernets, each scaled by the trained networks, and their mean: noise of one
    supernet is not that of another."""

    middle: Array
    """``(S,)``"""
    deviation: Array
    """``(S,)``"""
    together: float
    """Deviation of the mean of all"""

    @classmethod
    def scaled(cls, inherited: Array) -> Inherited:
        """From those of the trained networks ``(n, S)``, of which larger ones are better."""
        deviation = _usable(inherited.std(0))
        middle = inherited.mean(0)
        mean = ((inherited - middle) / deviation).mean(1)
        return cls(middle, deviation, float(_usable(np.array([mean.std()]))[0]))

    def columns(self, inherited: Array) -> tuple[Array, Array]:
        """The mean ``(B, 1)``, and what the single ones say beside it, ``(B, S)``, or ``(B, 0)`` of one alone."""
        standard = (inherited - self.middle) / self.deviation
        mean = standard.mean(1, keepdims=True)
        count = standard.shape[1]
        return mean / self.together, (standard / np.sqrt(count))[:, : count if count > 1 else 0]


def _usable(deviation: Array) -> Array:
    return np.where(deviation > 1e-12, deviation, 1.0)


@dataclass(frozen=True)
class Parts:
    """All ways of estimating, fitted to the same networks."""

    inherited: Inherited
    lines: tuple[Line, Line, Line]
    """In the order of :data:`PARTS`"""

    @classmethod
    def fit(cls, inherited: Array, sizes: Array, targets: Array) -> Parts:
        """From inherited metrics ``(n, S)`` and targets ``(n,)``, of both of which larger ones are better, and the
        columns of sizes ``(n, C)``."""
        scale = Inherited.scaled(inherited)
        mean, single = scale.columns(inherited)
        both = np.hstack([FREE * mean, single, sizes])
        return cls(scale, (Line.rising(mean, targets), Line.ridge(sizes, targets), Line.ridge(both, targets)))

    def predict(self, inherited: Array, sizes: Array) -> Array:
        """``(3, B)`` estimates, in the order of :data:`PARTS`."""
        mean, single = self.inherited.columns(inherited)
        columns = (mean, sizes, np.hstack([FREE * mean, single, sizes]))
        return np.stack([line.of(each) for line, each in zip(self.lines, columns, strict=True)])

    @staticmethod
    def left_out(inherited: Array, sizes: Array, targets: Array) -> Array:
        """``(3, n)`` what each part says of each network when it is fitted to all others."""
        places = np.arange(len(targets))
        found = np.empty((len(PARTS), len(targets)))
        for place in places:
            kept = places != place
            parts = Parts.fit(inherited[kept], sizes[kept], targets[kept])
            found[:, place] = parts.predict(inherited[[place]], sizes[[place]])[:, 0]
        return found
