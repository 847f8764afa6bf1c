"""Gaussian process on the genes of a search space, as a ranker.

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

KAPPA = 3.0
"""Number of standard deviations subtracted from the predicted mean; tuned on NAS-Bench-201, like the precisions."""
STEPS = 15
"""Iterations of the fit of length scales."""
MOST = 500
"""Largest number of evaluated architectures in a fit; with more, the best half and a random half are used."""
NOISE = 0.02
"""Prior value of the noise variance, relative to the variance of the values."""
PRECISION_RATE, PRECISION_VARIANCE, PRECISION_NOISE = 8.0, 0.2, 5.0
"""Precisions of the normal priors on the logarithms of rates, variance and noise."""


class GaussianProcessRanker:
    """Ranker by the lower confidence bound of a Gaussian process; smaller scores are better.

    The squared exponential kernel has one length scale for the options of each choice, and one for their sizes if they
    are numbers. Values are replaced by normal quantiles of their ranks.
    """

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self._variables, self._seed = Variables(space), seed
        slots = space.slots
        choice_of = np.repeat(np.arange(len(slots.choices)), [len(choice.options) for choice in slots.choices])
        sizes = self._variables.steps()[:, : slots.count]
        named = np.array([isinstance(choice.options[0][0], str) for choice in slots.choices])
        numbers = np.flatnonzero(~named[choice_of] & (slots.sizes > 2))
        self._features = np.hstack([np.eye(self._variables.count) / np.sqrt(2), sizes[:, numbers]])
        groups = np.concatenate([choice_of[self._variables.slot_of], len(named) + choice_of[numbers]])
        self._group = np.unique(groups, return_inverse=True)[1]
        self._first = np.log(4.0 / (slots.count + len(numbers)))

    def fit(self, rows: Rows, values: Numbers) -> None:
        """Fit to architectures ``(n, slots)`` and values ``(n,)``."""
        from scipy.linalg import solve_triangular
        from scipy.optimize import minimize
        from scipy.special import ndtri
        from scipy.stats import rankdata

        if len(values) > MOST:
            order = np.argsort(values, kind="stable")
            worse = np.random.default_rng(self._seed).permutation(order[MOST // 2 :])
            chosen = np.sort(np.concatenate([order[: MOST // 2], worse[: MOST // 2]]))
            rows, values = rows[chosen], values[chosen]
        targets = ndtri((rankdata(values) - 0.5) / len(values))
        targets = (targets - targets.mean()) / targets.std()
        features = self._variables.of(rows) @ self._features
        apart = np.stack([squared_distances(part, part) for part in self._parts(features)])
        first = np.concatenate([np.full(len(apart), self._first), [0.0, np.log(NOISE)]])
        precision = np.concatenate([np.full(len(apart), PRECISION_RATE), [PRECISION_VARIANCE, PRECISION_NOISE]])
        fitted = minimize(
            negative_log_posterior, first, (apart, targets, first, precision), "L-BFGS-B", jac=True,
            bounds=[(-8.0, 3.0)] * len(apart) + [(-3.0, 3.0), (-9.0, 1.0)], options={"maxiter": STEPS},
        )  # fmt: skip
        self._variance, self._noise = np.exp(fitted.x[-2:]).tolist()
        self._scaled = (self._features * np.exp(fitted.x[self._group] / 2)).astype(np.float32)
        self._points = self._variables.of(rows).astype(np.float32) @ self._scaled
        kernel = self._kernel(self._points, self._points).astype(np.float64)
        kernel[np.diag_indices(len(kernel))] += self._noise
        self._whiten = solve_triangular(np.linalg.cholesky(kernel), np.eye(len(kernel)), lower=True)
        self._weights = self._whiten.T @ (self._whiten @ targets)

    def score(self, rows: Rows) -> Numbers:
        """Return the lower confidence bounds ``(N,)``."""
        mean, deviation, *_ = self._posterior(rows)
        return np.round(mean - KAPPA * deviation, 5)  # equal on all machines

    def select(self, rows: Rows, count: int) -> Rows:
        """Choose ``count`` rows one by one, each with the lowest bound if earlier choices were evaluated."""
        mean, deviation, points, white = self._posterior(rows)
        chosen: list[int] = []
        for _ in range(min(count, len(rows))):
            bound = np.round(mean - KAPPA * deviation, 5)
            bound[chosen] = np.inf
            best = int(np.argmin(bound))
            chosen.append(best)
            shared = self._kernel(points[[best]], points)[0] - white[:, best] @ white
            new = shared / np.sqrt(deviation[best] ** 2 + self._noise)
            white = np.vstack([white, new.astype(np.float32)])
            deviation = np.sqrt(np.maximum(deviation**2 - new**2, 1e-9))
        return rows[chosen]

    def _posterior(self, rows: Rows) -> tuple[Numbers, Numbers, NDArray[np.float32], NDArray[np.float32]]:
        # means and standard deviations (N,), scaled features (N, F), whitened kernels (n, N)
        points = self._variables.of(rows).astype(np.float32) @ self._scaled
        kernel = self._kernel(self._points, points)
        white = self._whiten.astype(np.float32) @ kernel
        explained = np.einsum("ij,ij->j", white, white).astype(np.float64)
        return self._weights @ kernel, np.sqrt(np.maximum(self._variance - explained, 1e-9)), points, white

    def _kernel(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.float32(self._variance) * np.exp(np.float32(-0.5) * squared_distances(first, second))

    def _parts(self, features: Numbers) -> list[Numbers]:
        return [features[:, self._group == group] for group in range(self._group.max() + 1)]


def squared_distances(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)
    squares: NDArray[Any] = np.maximum(lengths - 2 * first @ second.T, 0)
    return squares


def negative_log_posterior(
    logarithms: Numbers, apart: Numbers, targets: Numbers, prior: Numbers, precision: Numbers
) -> tuple[float, Numbers]:
    """Return the negative log posterior and its gradient (Rasmussen and Williams, equation 5.9).

    Args:
        logarithms: logarithms of the rates ``(G,)``, the variance and the noise.
        apart: squared distances ``(G, n, n)``.
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
