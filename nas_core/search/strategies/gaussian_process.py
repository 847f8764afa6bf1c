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

from nas_core.search.constraints import PredictRows
from nas_core.search.strategies.additive import Variables
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

Numbers = NDArray[np.float64]
Singles = NDArray[np.float32]

KAPPA = 3.0
"""Number of standard deviations subtracted from the predicted mean; tuned on NAS-Bench-201, like the precisions."""
STEPS = 15
"""Iterations of the fit of length scales."""
MAX_RESULTS = 500
"""Largest number of evaluated architectures in a fit."""
MIN_VARIANCE = 1e-9
"""Smallest variance of a prediction."""
REFIT = 10
"""Length scales are fitted again when the number of results has grown by a fraction of 1 / REFIT."""
NOISE = 0.02
"""Prior value of the noise variance, relative to the variance of the values."""
PRECISION_RATE, PRECISION_VARIANCE, PRECISION_NOISE = 8.0, 0.2, 5.0
"""Precisions of the normal priors on the logarithms of rates, variance and noise."""
SLOPE, SLOPE_STD = -0.5, 0.5
"""Mean and standard deviation of the slope on the scores of a prior, for standardised results and scores."""


class GaussianProcess:
    """Gaussian process with a squared exponential kernel; each choice has a length scale for different options, and one
    for their sizes if they are numbers.

    Args:
        prior: function that scores rows, larger is better; the process is added to a multiple of the score.
    """

    def __init__(self, space: SearchSpace, prior: PredictRows | None = None) -> None:
        self._variables = Variables(space)
        self._prior = prior
        self._moments = 0.0, 1.0
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
        self._posterior: tuple[Rows, Singles, Posterior] | None = None

    def fit(self, rows: Rows, values: Numbers) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)``; values are replaced by the normal quantiles of their ranks.

        Length scales are fitted again whenever n has grown by about n / :data:`REFIT`. The fit is a function of its
        arguments: earlier calls only make it faster.
        """
        initial_count = len(rows) - len(rows) % max(1, len(rows) // REFIT)
        fitted_to = rows[:initial_count].tobytes() + values[:initial_count].tobytes()
        if fitted_to != self._fitted_to:
            selected = fit_subset(np.argsort(values[:initial_count], kind="stable"))
            if self._prior is not None:
                scores = self._prior(rows[selected])
                self._moments = float(scores.mean()), float(scores.std()) if np.ptp(scores) else 1.0
            self._fit_scales(rows[selected], values[selected])
            self._fitted_to, self._posterior = fitted_to, None
        selected = fit_subset(np.argsort(values, kind="stable"))
        rows, values = rows[selected], values[selected]
        self.initial_count = initial_count if len(rows) < MAX_RESULTS else len(rows)
        """Number of results that a new :class:`Posterior` is conditioned on at once."""
        self.points = self.scaled(rows)
        kernel = self.kernel(self.points, self.points).astype(np.float64)
        kernel[np.diag_indices(len(kernel))] += self.noise
        self.factor = np.linalg.cholesky(kernel)
        """Cholesky factor ``(n, n)`` of the kernel of the results."""
        self.targets = normal_scores(values) - self.mean(self.points)

    def posterior(self, rows: Rows) -> Posterior:
        """Return predictions for candidates ``(N, slots)``; fast for the same array after further results."""
        before = self._posterior
        if before and before[0] is rows and np.array_equal(before[1], self.points[: len(before[1])]):
            posterior = before[2]
            posterior.update()
        else:
            posterior = Posterior(self, self.scaled(rows))
        self._posterior = rows, self.points, posterior
        return posterior

    def _fit_scales(self, rows: Rows, values: Numbers) -> None:
        from scipy.optimize import minimize

        features = self._variables.of(rows) @ self._features
        groups = [features[:, self._group == group] for group in range(self._group.max() + 1)]
        squares = np.stack([squared_distances(group, group) for group in groups])
        scores = self._standardised(rows)
        init = np.concatenate([np.full(len(squares), self._first), [0.0, np.log(NOISE)]])
        precision = np.concatenate([np.full(len(squares), PRECISION_RATE), [PRECISION_VARIANCE, PRECISION_NOISE]])
        targets = normal_scores(values) - SLOPE * scores
        fitted = minimize(
            negative_log_posterior, init, (squares, targets, init, precision, SLOPE_STD * scores), "L-BFGS-B", jac=True,
            bounds=[(-8.0, 3.0)] * len(squares) + [(-3.0, 3.0), (-9.0, 1.0)], options={"maxiter": STEPS},
        )  # fmt: skip
        self.variance, self.noise = np.exp(fitted.x[-2:]).tolist()
        self._scaled = (self._features * np.exp(fitted.x[self._group] / 2)).astype(np.float32)

    def scaled(self, rows: Rows) -> Singles:
        """Return features ``(N, F + 1)`` in units of the length scales, and the standardised score of the prior."""
        points = self._variables.of(rows).astype(np.float32) @ self._scaled
        return np.column_stack([points, self._standardised(rows).astype(np.float32)])

    def _standardised(self, rows: Rows) -> Numbers:
        """Return the scores of the prior ``(N,)``, relative to those of the results; 0 without a prior."""
        if self._prior is None:
            return np.zeros(len(rows))
        mean, deviation = self._moments
        return (self._prior(rows).astype(np.float64) - mean) / deviation

    def mean(self, points: Singles) -> Numbers:
        """Return the mean ``(N,)`` before any results."""
        means: Numbers = SLOPE * points[:, -1].astype(np.float64)
        return means

    def variances(self, points: Singles) -> Numbers:
        """Return the variances ``(N,)`` before any results."""
        variances: Numbers = self.variance + (SLOPE_STD * points[:, -1].astype(np.float64)) ** 2
        return variances

    def kernel(self, first: Singles, second: Singles) -> Singles:
        squares = squared_distances(first[:, :-1], second[:, :-1])
        by_prior = np.float32(SLOPE_STD**2) * np.outer(first[:, -1], second[:, -1])
        return np.float32(self.variance) * np.exp(np.float32(-0.5) * squares) + by_prior


class Posterior:
    """Predictions of a fitted process for candidates.

    Args:
        points: scaled features ``(N, F)``.
    """

    def __init__(self, process: GaussianProcess, points: Singles) -> None:
        from scipy.linalg import solve_triangular

        self._process, self._points = process, points
        count = process.initial_count
        self._rows = count
        self._whitened = np.empty((count + count // REFIT + 1, len(points)), np.float32)
        factor = process.factor[:count, :count].astype(np.float32)
        self._whitened[:count] = solve_triangular(factor, process.kernel(process.points[:count], points), lower=True)
        explained = np.einsum("ij,ij->j", self._white, self._white).astype(np.float64)
        self.deviation: Numbers = np.sqrt(np.maximum(process.variances(points) - explained, MIN_VARIANCE))
        """Standard deviations ``(N,)``."""
        self.update()

    def update(self) -> None:
        """Condition on the new results of the process."""
        from scipy.linalg import solve_triangular

        process = self._process
        for row in range(self._rows, len(process.points)):
            self._condition(process.points[[row]], process.factor[row, :row], process.factor[row, row])
        targets = solve_triangular(process.factor, process.targets, lower=True)
        explained = (targets.astype(np.float32) @ self._white).astype(np.float64)
        self.mean: Numbers = process.mean(self._points) + explained
        """Predicted normal quantiles ``(N,)``."""

    def assume_mean(self, index: int) -> None:
        """Assume that the result of candidate ``index`` equals its predicted mean; only standard deviations change."""
        residual_std = np.sqrt(self.deviation[index] ** 2 + self._process.noise)
        self._condition(self._points[[index]], self._white[:, index], residual_std)

    @property
    def _white(self) -> Singles:
        return self._whitened[: self._rows]

    def _condition(self, point: Singles, whitened: NDArray[Any], residual_std: float) -> None:
        kernel = self._process.kernel(point, self._points)[0]
        new = (kernel - whitened.astype(np.float32) @ self._white) / np.float32(residual_std)
        if self._rows == len(self._whitened):
            self._whitened = np.vstack([self._whitened, np.empty_like(self._whitened)])
        self._whitened[self._rows] = new
        self._rows += 1
        self.deviation = np.sqrt(np.maximum(self.deviation**2 - new.astype(np.float64) ** 2, MIN_VARIANCE))


class GaussianProcessRanker:
    """Ranker by the lower confidence bound of a Gaussian process; smaller scores are better."""

    def __init__(self, space: SearchSpace, prior: PredictRows | None = None) -> None:
        self._process = GaussianProcess(space, prior)

    def fit(self, rows: Rows, values: Numbers) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)``."""
        self._process.fit(rows, values)

    def score(self, rows: Rows) -> Numbers:
        """Return the lower confidence bound ``(N,)``."""
        return _bound(self._process.posterior(rows))

    def select(self, rows: Rows, count: int) -> Rows:
        """Select ``count`` rows in turn, each by the lowest bound if earlier ones have their predicted results."""
        posterior = Posterior(self._process, self._process.scaled(rows))
        selected: list[int] = []
        for _ in range(min(count, len(rows))):
            bound = _bound(posterior)
            bound[selected] = np.inf
            selected.append(int(np.argmin(bound)))
            posterior.assume_mean(selected[-1])
        return rows[selected]


def _bound(posterior: Posterior) -> Numbers:
    return np.round(posterior.mean - KAPPA * posterior.deviation, 5)  # equal on all machines


def normal_scores(values: Numbers) -> Numbers:
    """Return the normal quantiles of the values' ranks ``(n,)``, with mean 0 and variance 1, or 0 if all are equal."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores = ndtri((rankdata(values) - 0.5) / len(values))
    standardised: Numbers = (scores - scores.mean()) / (scores.std() or 1.0)
    return standardised


def fit_subset(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of at most :data:`MAX_RESULTS` results, ascending: the best, and evenly spaced ranks.

    Args:
        order: indices ``(n,)`` of the results, best first.
    """
    if len(order) > MAX_RESULTS:
        others = np.linspace(MAX_RESULTS // 2, len(order) - 1, MAX_RESULTS - MAX_RESULTS // 2).round().astype(np.int64)
        order = np.concatenate([order[: MAX_RESULTS // 2], order[others]])
    return np.sort(order)


def squared_distances(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)
    squares: NDArray[Any] = np.maximum(lengths - 2 * first @ second.T, 0)
    return squares


def negative_log_posterior(
    logarithms: Numbers,
    squares: Numbers,
    targets: Numbers,
    prior_mean: Numbers,
    precision: Numbers,
    linear: Numbers | float = 0.0,
) -> tuple[float, Numbers]:
    """Return the negative log posterior and its gradient (Rasmussen and Williams, equation 5.9).

    Args:
        logarithms: logarithms ``(G + 2,)`` of G inverse squared length scales, variance and noise.
        squares: squared distances ``(G, n, n)`` between results ``targets`` ``(n,)``.
        prior_mean, precision: mean and inverse variance of the normal prior of ``logarithms``.
        linear: vector ``(n,)`` whose outer product with itself is added to the kernel.
    """
    from scipy.linalg import cho_solve

    rates, variance, noise = np.exp(logarithms[:-2]), *np.exp(logarithms[-2:])
    signal = variance * np.exp(-0.5 * np.tensordot(rates, squares, 1))
    factor = np.linalg.cholesky(signal + np.outer(linear, linear) + noise * np.eye(len(targets)))
    weights = cho_solve((factor, True), targets)
    by_kernel = cho_solve((factor, True), np.eye(len(targets))) - np.outer(weights, weights)
    difference = logarithms - prior_mean
    by_signal = by_kernel * signal
    gradient = [
        *(-0.25 * rates * np.tensordot(squares, by_signal, 2)),
        0.5 * by_signal.sum(),
        0.5 * noise * np.trace(by_kernel),
    ]
    loss = 0.5 * targets @ weights + np.log(np.diag(factor)).sum() + 0.5 * (precision * difference**2).sum()
    return float(loss), np.array(gradient) + precision * difference
