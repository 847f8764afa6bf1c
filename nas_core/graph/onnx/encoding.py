"""Nodes of an encoded ONNX model."""

from __future__ import annotations

from dataclasses import dataclass, field

from nas_core.graph.onnx.costs import Cost
from nas_core.graph.onnx.network import Network, Shape

FREE = Cost(0, 0, 0)


@dataclass
class Encoded:
    """Nodes of an encoded ONNX model in topological order."""

    batch: int
    operations: list[str] = field(default_factory=list)
    """ONNX operator of each node, or ``Input``."""
    ops: list[int] = field(default_factory=list)
    attributes: list[tuple[int, ...]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)
    """Node index of each tensor."""
    total: Cost = FREE
    """Costs of the network. Shared parameters count once."""
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
