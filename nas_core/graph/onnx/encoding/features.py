"""The 192 numbers of a node and the 40 of a network, as NN-Former's embedding computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import unknown_choice
from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.onnx.operators import KINDS

FEATURES = ("corrected", "released")


def node_features(graph: Graph, features: str = "corrected") -> NDArray[np.float32]:
    """``(N, 192)``: one-hot operation (32), 8 attributes with 10 sinusoids each, 4 dimensions with 20 each.

    Args:
        features: the encoding that the graph was read with; as released, inputs and unknown operators have no code. A
            predictor does give their index a weight of its own.

    Raises:
        GraphError: the graph has not 8 attributes and 4 dimensions per node.
    """
    if features not in FEATURES:
        raise unknown_choice("encoding of ONNX operators", features, FEATURES)
    if graph.attributes is None or graph.attributes.shape[1] != 8 or graph.shapes is None:
        raise GraphError("the graph has no 8 attributes and 4 dimensions per node; expected one that read_onnx made")
    code = np.eye(KINDS, dtype=np.float32)[graph.ops]
    if features == "released":
        code[:, -1] = 0
    return np.hstack([code, _sinusoids(graph.attributes, 5), _sinusoids(graph.shapes, 10)])


def static_features(graph: Graph) -> NDArray[np.float32]:
    """``(40,)``: batch, FLOPs / 1e9, parameters / 1e7, memory access / 1e7 with 10 sinusoids each.

    Raises:
        GraphError: the graph has not 4 static numbers.
    """
    if graph.static is None or len(graph.static) != 4:
        raise GraphError("the graph has no 4 static numbers; expected one that read_onnx made")
    return _sinusoids(graph.static[None], 5).reshape(-1)


def _sinusoids(values: NDArray[Any], frequencies: int) -> NDArray[np.float32]:
    """``(N, K)`` -> ``(N, 2 F K)``: sine and cosine of v · 10000^(-j / F), one after the other."""
    angles = values[..., None] * 10000.0 ** (-np.arange(frequencies, dtype=np.float32) / frequencies)
    waves = np.stack([np.sin(angles), np.cos(angles)], -1)
    return np.asarray(waves.reshape(len(values), -1), np.float32)
