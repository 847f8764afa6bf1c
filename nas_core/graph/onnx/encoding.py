"""Nodes of an encoding, and their features as NN-Former embeds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import unknown_choice
from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.onnx.costs import Cost
from nas_core.graph.onnx.network import Network, Shape
from nas_core.graph.onnx.operators import KINDS

FREE = Cost(0, 0, 0)


@dataclass
class Encoded:
    """Nodes of an encoding, sources before targets."""

    batch: int
    operations: list[str] = field(default_factory=list)
    """ONNX operator of each node, or ``Input``."""
    ops: list[int] = field(default_factory=list)
    attributes: list[tuple[int, ...]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)
    """Node of each tensor."""
    total: Cost = FREE
    """Costs of the network; shared parameters count once."""
    unknown: dict[str, int] = field(default_factory=dict)

    def add(
        self, tensor: str, operation: str, op: int, attributes: tuple[int, ...], shape: Shape, cost: Cost = FREE
    ) -> None:
        self.nodes[tensor] = len(self.ops)
        self.operations.append(operation)
        self.ops.append(op)
        self.attributes.append(attributes)
        self.shapes.append(shape)
        self.costs.append(cost)


def batch_of(network: Network) -> int:
    shapes = (network.shapes[tensor] for tensor in network.inputs)
    return next((shape[0] for shape in shapes if shape), 1)


FEATURES = ("corrected", "released")


def node_features(graph: Graph, features: str = "corrected") -> NDArray[np.float32]:
    """Return node features ``(N, 192)``: one-hot operation (32), 8 attributes with 10 sinusoids each, 4 sizes with 20.

    In the released encoding, inputs and unknown operators have no code.
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
    """Return network features ``(40,)``: batch, FLOPs, parameters and memory access with 10 sinusoids each."""
    if graph.static is None or len(graph.static) != 4:
        raise GraphError("the graph has no 4 static numbers; expected one that read_onnx made")
    return _sinusoids(graph.static[None], 5).reshape(-1)


def _sinusoids(values: NDArray[Any], frequencies: int) -> NDArray[np.float32]:
    """Map ``(N, K)`` to ``(N, 2 F K)``: sine and cosine of v · 10000^(-j / F), alternating."""
    angles = values[..., None] * 10000.0 ** (-np.arange(frequencies, dtype=np.float32) / frequencies)
    waves = np.stack([np.sin(angles), np.cos(angles)], -1)
    return np.asarray(waves.reshape(len(values), -1), np.float32)
