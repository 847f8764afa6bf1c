"""Gaussian process on the genes of a space, as a ranker and for several objectives.

Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, 5.4.1 (marginal likelihood); Srinivas et al.,
"Gaussian Process Optimization in the Bandit Setting", ICML 2010 (confidence bounds); Desautels et al., "Parallelizing
Exploration-Exploitation Tradeoffs", JMLR 15, 2014 (batches).

Letters: n evaluated architectures, N candidates, F features, G groups of features with one length scale each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.search.strategies.additive import Variables
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

Numbers = NDArray[np.float64]
Singles = NDArray[np.float32]

KAPPA = 3.0
"""Number of standard deviations subtracted from the predicted mean; tuned on NAS-Bench-201, like the precisions."""
STEPS = 15
"""Iterations of the fit of length scales."""
MOST = 500
"""Largest number of evaluated architectures in a fit."""
LEAST = 1e-9
"""Smallest variance of a prediction."""
REFIT = 10
"""Length scales are fitted anew when the number of results has grown by one part in this many."""
NOISE = 0.02
"""Prior value of the noise variance, relative to the variance of the values."""
PRECISION_RATE, PRECISION_VARIANCE, PRECISION_NOISE = 8.0, 0.2, 5.0
"""Precisions of the normal priors on the logarithms of rates, variance and noise."""


class GaussianProcess:
    """Gaussian process with a squared exponential kernel; each choice has a length scale for different options, and one
    for their sizes if they are numbers."""

    def __init__(self, space: SearchSpace) -> None:
        self._variables = Variables(space)
        slots = space.slots
        choice_of = np.repeat(np.arange(len(slots.choices)), [len(choice.options) for choice in slots.choices])
        sizes = self._variables.steps()[:, : slots.count]
        named = np.array([isinstance(choice.options[0][0], str) for choice in slots.choices])
        numbers = np.flatnonzero(~named[choice_of] & (slots.sizes > 2))
        self._features = np.hstack([np.eye(self._variables.count) / np.sqrt(2), sizes[:, numbers]])
        groups = np.concatenate([choice_of[self._variables.slot_of], len(named) + choice_of[numbers]])
        self._group = np.unique(groups, return_inverse=True)[1]
        self._first = np.log(4.0 / (slots.count + len(numbers)))
        self._fitted_to = b""
        self._known: tuple[Rows, Singles, Posterior] | None = None

    def fit(self, rows: Rows, values: Numbers) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)``; values are replaced by the normal quantiles of their ranks.

        Length scales are fitted again whenever n has grown by about n / :data:`REFIT`. The fit is a function of its
        arguments: earlier calls only make it faster.
        """
        begun = len(rows) - len(rows) % max(1, len(rows) // REFIT)
        fitted_to = rows[:begun].tobytes() + values[:begun].tobytes()
        if fitted_to != self._fitted_to:
            kept = subset(np.argsort(values[:begun], kind="stable"))
            self._fit_scales(rows[kept], values[kept])
            self._fitted_to, self._known = fitted_to, None
        kept = subset(np.argsort(values, kind="stable"))
        rows, values = rows[kept], values[kept]
        self.begun = begun if len(rows) < MOST else len(rows)
        """Number of results with which a :class:`Posterior` begins."""
        self.points = self.scaled(rows)
        kernel = self.kernel(self.points, self.points).astype(np.float64)
        kernel[np.diag_indices(len(kernel))] += self.noise
        self.factor = np.linalg.cholesky(kernel)
        """Cholesky factor ``(n, n)`` of the kernel of the results."""
        self.targets = normal_scores(values)

    def posterior(self, rows: Rows) -> Posterior:
        """Return predictions for candidates ``(N, slots)``; fast for the same array after further results."""
        before = self._known
        if before and before[0] is rows and np.array_equal(before[1], self.points[: len(before[1])]):
            posterior = before[2]
            posterior.update()
        else:
            posterior = Posterior(self, self.scaled(rows))
        self._known = rows, self.points, posterior
        return posterior

    def _fit_scales(self, rows: Rows, values: Numbers) -> None:
        from scipy.optimize import minimize

        features = self._variables.of(rows) @ self._features
        parts = [features[:, self._group == group] for group in range(self._group.max() + 1)]
        apart = np.stack([squared_distances(part, part) for part in parts])
        first = np.concatenate([np.full(len(apart), self._first), [0.0, np.log(NOISE)]])
        precision = np.concatenate([np.full(len(apart), PRECISION_RATE), [PRECISION_VARIANCE, PRECISION_NOISE]])
        fitted = minimize(
            negative_log_posterior, first, (apart, normal_scores(values), first, precision), "L-BFGS-B", jac=True,
            bounds=[(-8.0, 3.0)] * len(apart) + [(-3.0, 3.0), (-9.0, 1.0)], options={"maxiter": STEPS},
        )  # fmt: skip
        self.variance, self.noise = np.exp(fitted.x[-2:]).tolist()
        self._scaled = (self._features * np.exp(fitted.x[self._group] / 2)).astype(np.float32)

    def scaled(self, rows: Rows) -> Singles:
        """Return features ``(N, F)`` in units of the length scales."""
        points: Singles = self._variables.of(rows).astype(np.float32) @ self._scaled
        return points

    def kernel(self, first: Singles, second: Singles) -> Singles:
        return np.float32(self.variance) * np.exp(np.float32(-0.5) * squared_distances(first, second))


class Posterior:
    """Predictions of a fitted process for candidates.

    Args:
        points: scaled features ``(N, F)``.
    """

    def __init__(self, process: GaussianProcess, points: Singles) -> None:
        from scipy.linalg import solve_triangular

        self._process, self._points = process, points
        begun = process.begun
        self._rows = begun
        self._whitened = np.empty((begun + begun // REFIT + 1, len(points)), np.float32)
        factor = process.factor[:begun, :begun].astype(np.float32)
        self._whitened[:begun] = solve_triangular(factor, process.kernel(process.points[:begun], points), lower=True)
        explained = np.einsum("ij,ij->j", self._white, self._white).astype(np.float64)
        self.deviation: Numbers = np.sqrt(np.maximum(process.variance - explained, LEAST))
        """Standard deviations ``(N,)``."""
        self.update()

    def update(self) -> None:
        """Condition on the results of the process that are not yet considered."""
        from scipy.linalg import solve_triangular

        process = self._process
        for row in range(self._rows, len(process.points)):
            self._condition(process.points[[row]], process.factor[row, :row], process.factor[row, row])
        targets = solve_triangular(process.factor, process.targets, lower=True)
        self.mean: Numbers = (targets.astype(np.float32) @ self._white).astype(np.float64)
        """Predicted normal quantiles ``(N,)``."""

    def believe(self, place: int) -> None:
        """Assume that the result of candidate ``place`` equals its predicted mean; only standard deviations change."""
        left = np.sqrt(self.deviation[place] ** 2 + self._process.noise)
        self._condition(self._points[[place]], self._white[:, place], left)

    @property
    def _white(self) -> Singles:
        return self._whitened[: self._rows]

    def _condition(self, point: Singles, whitened: NDArray[Any], left: float) -> None:
        kernel = self._process.kernel(point, self._points)[0]
        new = (kernel - whitened.astype(np.float32) @ self._white) / np.float32(left)
        if self._rows == len(self._whitened):
            self._whitened = np.vstack([self._whitened, np.empty_like(self._whitened)])
        self._whitened[self._rows] = new
        self._rows += 1
        self.deviation = np.sqrt(np.maximum(self.deviation**2 - new.astype(np.float64) ** 2, LEAST))


class GaussianProcessRanker:
    """Ranker by the lower confidence bound of a Gaussian process; smaller scores are better."""

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self._process = GaussianProcess(space)

    def fit(self, rows: Rows, values: Numbers) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)``."""
        self._process.fit(rows, values)

    def score(self, rows: Rows) -> Numbers:
        """Return the lower confidence bound ``(N,)``."""
        return _bound(self._process.posterior(rows))

    def select(self, rows: Rows, count: int) -> Rows:
        """Choose ``count`` rows one by one, each with the lowest bound if those before have their predicted results."""
        posterior = Posterior(self._process, self._process.scaled(rows))
        chosen: list[int] = []
        for _ in range(min(count, len(rows))):
            bound = _bound(posterior)
            bound[chosen] = np.inf
            chosen.append(int(np.argmin(bound)))
            posterior.believe(chosen[-1])
        return rows[chosen]


def _bound(posterior: Posterior) -> Numbers:
    return np.round(posterior.mean - KAPPA * posterior.deviation, 5)  # equal on all machines


def normal_scores(values: Numbers) -> Numbers:
    """Return the normal quantiles of the values' ranks ``(n,)``, with mean 0 and variance 1, or 0 if all are equal."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores = ndtri((rankdata(values) - 0.5) / len(values))
    standardised: Numbers = (scores - scores.mean()) / (scores.std() or 1.0)
    return standardised


def subset(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of at most :data:`MOST` results, ascending: the best, and others at evenly spaced ranks.

    Args:
        order: indices ``(n,)`` of the results, best first.
    """
    if len(order) > MOST:
        others = np.linspace(MOST // 2, len(order) - 1, MOST - MOST // 2).round().astype(np.int64)
        order = np.concatenate([order[: MOST // 2], order[others]])
    return np.sort(order)


def squared_distances(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)
    squares: NDArray[Any] = np.maximum(lengths - 2 * first @ second.T, 0)
    return squares


def negative_log_posterior(
    logarithms: Numbers, apart: Numbers, targets: Numbers, prior: Numbers, precision: Numbers
) -> tuple[float, Numbers]:
    """Return the negative log posterior and its gradient (Rasmussen and Williams, equation 5.9).

    Args:
        logarithms: logarithms ``(G + 2,)`` of G inverse squared length scales, variance and noise.
        apart: squared distances ``(G, n, n)`` between results ``targets`` ``(n,)``.
        prior, precision: mean and inverse variance of the normal prior of ``logarithms``.
    """
    from scipy.linalg import cho_solve

    rates, variance, noise = np.exp(logarithms[:-2]), *np.exp(logarithms[-2:])
    smooth = variance * np.exp(-0.5 * np.tensordot(rates, apart, 1))
    factor = np.linalg.cholesky(smooth + noise * np.eye(len(targets)))
    weights = cho_solve((factor, True), targets)
    by_kernel = cho_solve((factor, True), np.eye(len(targets))) - np.outer(weights, weights)
    off = logarithms - prior
    by_smooth = by_kernel * smooth
    gradient = [
        *(-0.25 * rates * np.tensordot(apart, by_smooth, 2)),
        0.5 * by_smooth.sum(),
        0.5 * noise * np.trace(by_kernel),
    ]
    loss = 0.5 * targets @ weights + np.log(np.diag(factor)).sum() + 0.5 * (precision * off**2).sum()
    return float(loss), np.array(gradient) + precision * off
