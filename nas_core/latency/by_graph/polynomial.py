"""A quadratic polynomial of what a network costs as a whole."""

from __future__ import annotations

import numpy as np

from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import CORRECTED
from nas_core.latency.by_graph.prices import Floats

__all__ = ["COLUMNS", "TERMS", "log_costs", "polynomial_fit", "polynomial_of"]

_MATRIX = tuple(CORRECTED.index(name) for name in ("conv", "conv_transpose", "gemm", "matmul", "attention"))
COLUMNS = 4
"""Number of costs of a network."""
TERMS = 1 + COLUMNS + COLUMNS * (COLUMNS + 1) // 2
"""Number of terms of the polynomial."""
_RIDGE = 1e-2
"""Squared errors of logarithms that a squared coefficient of a standardised term counts as."""


def log_costs(graphs: Graphs) -> Floats:
    """``(G, 4)`` logarithms of GFLOPs, of what convolutions and products give (timm's activations), of parameters and
    of memory access."""
    assert graphs.static is not None and graphs.shapes is not None
    network = np.repeat(np.arange(len(graphs)), graphs.sizes)
    given = np.maximum(graphs.shapes.astype(np.float64), 1).prod(1) * np.isin(graphs.ops, _MATRIX)
    activations = np.bincount(network, given, len(graphs)) / 1e6
    columns = np.column_stack([graphs.static[:, 1], activations, graphs.static[:, 2], graphs.static[:, 3]])
    return np.asarray(np.log(np.maximum(columns, 1e-6)), np.float64)


def polynomial_fit(costs: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Scale ``(2, 4)`` and weights ``(15,)`` of the polynomial of costs ``(G, 4)`` that is nearest to ``logs (G,)`` by
    ridge regression."""
    scale = np.asarray(np.stack([costs.mean(0), np.maximum(costs.std(0), 1e-3)]), np.float64)
    inputs = _terms((costs - scale[0]) / scale[1])
    penalty = _RIDGE * len(logs) * np.eye(inputs.shape[1])
    penalty[0, 0] = 0
    return scale, np.asarray(np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ logs), np.float64)


def polynomial_of(costs: Floats, scale: Floats, weights: Floats) -> Floats:
    """``(G,)``; costs farther from the mean than three standard deviations count as that, for a quadratic polynomial
    bends back."""
    given = np.clip((costs - scale[0]) / scale[1], -3, 3)
    return np.asarray(_terms(given) @ weights)


def _terms(given: Floats) -> Floats:
    """``(G, 15)`` constant, linear, quadratic."""
    first, second = np.triu_indices(given.shape[1])
    return np.hstack([np.ones((len(given), 1)), given, given[:, first] * given[:, second]])
