"""Costs of graphs as columns of regressions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx.operators import KINDS

__all__ = ["check_kinds", "costs_by_kind", "log_static", "relative_nnls", "shrunk_prices"]

Floats = NDArray[np.float64]


def log_static(graphs: Graphs) -> Floats:
    """``(G, 4)`` logarithms of batch, GFLOPs, parameters / 1e7 and memory access / 1e7."""
    assert graphs.static is not None
    return np.log(np.maximum(graphs.static.astype(np.float64), 1e-9))


def check_kinds(graphs: Graphs) -> None:
    """Refuse graphs whose operations are no kinds of an encoding of ONNX operators.

    Raises:
        GraphError: an operation index of no kind.
    """
    if len(graphs.ops) and int(graphs.ops.max()) >= KINDS:
        raise GraphError(f"operation index {int(graphs.ops.max())} in a graph; expected 0 to {KINDS - 1}")


def costs_by_kind(graphs: Graphs) -> Floats:
    """``(G, 3 KINDS)`` sums over the nodes of each kind of operator: how many do anything, GFLOPs, memory access in
    million elements.

    Raises:
        GraphError: an operation index of no kind.
    """
    assert graphs.costs is not None
    check_kinds(graphs)
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    place = graph * KINDS + graphs.ops
    flops, _, access = graphs.costs.astype(np.float64).T
    columns = ((flops + access > 0).astype(np.float64), flops / 1e9, access / 1e6)
    sums = [np.bincount(place, column, len(graphs) * KINDS).reshape(-1, KINDS) for column in columns]
    return np.concatenate(sums, 1)


def relative_nnls(inputs: Floats, targets: Floats) -> Floats:
    """Weights ``(F,)``, none below 0, for which ``inputs @ weights`` has the least squared relative error to targets
    ``(G,)`` above 0."""
    return _nnls(inputs / targets[:, None], np.ones(len(targets)))


def shrunk_prices(columns: Floats, targets: Floats, shrinkage: float) -> Floats:
    """Weights ``(3 KINDS + 1,)`` of :func:`costs_by_kind` ``(G, 3 KINDS)`` and of a constant, as :func:`relative_nnls`
    finds them, but each drawn to the weight that all kinds would share: a kind that few networks have, or none, costs
    what operators cost on average.

    Args:
        shrinkage: squared relative errors that a weight is worth which is off by as much as the whole of its cost.
    """
    inputs = np.hstack([columns, np.ones((len(columns), 1))])
    totals = np.hstack([columns.reshape(len(columns), 3, KINDS).sum(2), inputs[:, -1:]])
    spread = [KINDS] * 3 + [1]
    shared = np.repeat(relative_nnls(totals, targets), spread)
    size = np.repeat((totals / targets[:, None]).mean(0), spread)
    drawn = np.sqrt(shrinkage) * np.diag(size)
    return _nnls(np.vstack([inputs / targets[:, None], drawn]), np.concatenate([np.ones(len(targets)), drawn @ shared]))


def _nnls(matrix: Floats, wanted: Floats) -> Floats:
    """Non-negative least squares on columns of one length; columns of zeros get 0."""
    scale = np.sqrt((matrix**2).mean(0))
    used = scale > 0
    weights = np.zeros(matrix.shape[1])
    weights[used] = nnls(matrix[:, used] / scale[used], wanted, maxiter=100 * len(weights))[0]
    weights[used] /= scale[used]
    return weights
