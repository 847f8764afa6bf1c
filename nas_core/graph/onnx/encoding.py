"""Encoding of ONNX operators: nodes are the operators that a runtime computes.

Differences from the encoding of the published latency models: constants, Identity, Dropout and unused operators are not
nodes; kernels have all dimensions; each attribute has its own column; shapes of more than four dimensions keep their
number of elements; fused operators of onnxruntime are known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.costs import Cost, cost_of
from nas_core.graph.onnx.network import Network, Operation, Shape, Site, check_fit, einsum_sizes, site_of
from nas_core.graph.onnx.operators import INPUT, KIND_NAMES, OTHER, PASS_THROUGH, SHAPE_READERS, operator_kind

_FREE = Cost(0, 0, 0)
ATTRIBUTES = ("kernel_depth", "kernel_height", "kernel_width", "stride", "padding", "dilation", "groups", "summed")
"""Columns of ``Graph.attributes``. A value is 0 if an operator has no such number.

- kernel: size of convolution and pooling windows, with the last axis as width; for global pooling, the whole input.
- stride: product over the axes. padding: number of added elements. dilation: the largest.
- groups: groups of convolutions and group normalisation, heads of attention, tensors of Concat and Split.
- summed: number of summands per output element.

A Transpose has its permutation in these columns.
"""


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
    total: Cost = _FREE
    """Costs of the network. Shared parameters count once."""
    unknown: dict[str, int] = field(default_factory=dict)

    def add(
        self, tensor: str, operation: str, op: int, attributes: tuple[int, ...], shape: Shape, cost: Cost = _FREE
    ) -> None:
        self.nodes[tensor] = len(self.ops)
        self.operations.append(operation)
        self.ops.append(op)
        self.attributes.append(attributes)
        self.shapes.append(shape)
        self.costs.append(cost)


def attributes_of(site: Site, kind: int | None) -> Sequence[int]:
    """Return an operator's value of each column in :data:`ATTRIBUTES`. ``kind`` is its :func:`operator_kind`."""
    name = "other" if kind is None else KIND_NAMES[kind]
    if site.kind == "Transpose":
        perm = site.settings.get("perm", tuple(reversed(range(len(site.input())))))
        return [*perm, *[0] * 8][:8]
    if name in ("conv", "conv_transpose") and len(site.filters()) > 2:
        groups = int(site.settings.get("group", 1))
        return [*_window(site, site.filters()[2:]), groups, site.input()[1] // max(1, groups)]
    if name in ("max_pool", "average_pool") and "kernel_shape" in site.settings:
        return [*_window(site, site.settings["kernel_shape"]), 0, 0]
    if name == "global_pool":
        return [*_window(site, site.input()[2:]), 0, 0]
    return [0, 0, 0, 0, 0, 0, *_groups_and_sum(site, name)]


def four_dims(shape: Shape) -> Shape:
    """Return a shape of four dimensions: padded with zeros, or with merged leading dimensions."""
    if len(shape) > 4:
        return (math.prod(shape[:-3]), *shape[-3:])
    return (*shape, 0, 0, 0, 0)[:4]


def _window(site: Site, kernel: Sequence[int]) -> list[int]:
    rank = len(kernel)
    strides = site.settings.get("strides", (1,) * rank)
    dilations = site.settings.get("dilations", (1,) * rank)
    padding = sum(site.settings.get("pads", ()))
    if str(site.settings.get("auto_pad", "")).startswith("SAME") and site.kind != "ConvTranspose":
        axes = zip(site.input()[2:], site.out[2:], kernel, strides, dilations, strict=False)
        padding = sum(max(0, (output_size - 1) * s + (k - 1) * d + 1 - size) for size, output_size, k, s, d in axes)
    last = list(kernel)[-3:]
    return [*[0] * (3 - len(last)), *last, math.prod(strides), max(0, padding), max(dilations, default=1)]


def _groups_and_sum(site: Site, name: str) -> tuple[int, int]:
    shape, settings = site.input(), site.settings
    if name == "gemm" and shape:
        return 0, shape[0 if settings.get("transA") else -1]
    if site.kind == "Einsum":
        return 0, einsum_sizes(site)[1]
    if name == "matmul" and shape:
        return 0, shape[-1]
    if name == "attention":
        heads = shape[1] if len(shape) == 4 else int(settings.get("q_num_heads", settings.get("num_heads", 1)))
        keys = site.input(1) if len(site.input(1)) >= 3 else shape
        return heads, keys[-2] if len(keys) > 1 else 0
    if name == "recurrent" and shape:
        return 2 if settings.get("direction") == "bidirectional" else 1, shape[-1]
    if name == "layer_norm" and shape:
        return 0, math.prod(shape[site.axis(-1) :])
    if name == "group_norm" and len(shape) > 1:
        groups = int(settings.get("num_groups", settings.get("groups", shape[1])))
        return groups, math.prod(shape[1:]) // max(1, groups)
    if name == "softmax" and shape:
        return 0, shape[site.axis(-1)] if site.axis(-1) < len(shape) else 0
    if name == "reduce" and site.out_size:
        return 0, math.prod(shape) // site.out_size
    if site.kind in ("Concat", "Sum", "Mean", "Max", "Min"):
        return len(site.ins), 0
    if site.kind in ("Split", "SplitToSequence"):
        return len(site.outs), 0
    return 0, 0


def encode(network: Network) -> Encoded:
    source_of: dict[str, str] = {}
    copies: set[str] = set()
    for op in network.operations:
        if op.kind in PASS_THROUGH and op.outputs[0] in network.constants:
            copies.add(op.outputs[0])  # exporters join parameters that are equal before training
        elif op.kind in PASS_THROUGH:
            source_of[op.outputs[0]] = source_of.get(op.inputs[0], op.inputs[0])
    operations, needed = _needed(network, source_of)
    shapes = (network.shapes[tensor] for tensor in network.inputs)
    encoded = Encoded(next((shape[0] for shape in shapes if shape), 1))
    for tensor in network.inputs:
        if tensor in needed:
            encoded.add(tensor, "Input", INPUT, (0,) * len(ATTRIBUTES), four_dims(network.shape(tensor)))
    unknown: Counter[str] = Counter()
    cache: Cache = {}
    for op in operations:
        _add(op, network, source_of, needed, encoded, cache)
        if operator_kind(op.kind) is None:
            unknown[op.kind] += 1
    if not encoded.edges:
        raise GraphError(f"{network.name} has no operator between its inputs and outputs; expected a network")
    weights = network.weights & (network.stored | copies) & needed
    params = sum(math.prod(shape) for shape in (network.shapes.get(tensor, ()) for tensor in weights) if shape)
    encoded.total = Cost(sum(c.flops for c in encoded.costs), params, sum(c.access for c in encoded.costs))
    encoded.unknown = dict(unknown)
    return encoded


def _needed(network: Network, source_of: dict[str, str]) -> tuple[list[Operation], set[str]]:
    needed = {source_of.get(tensor, tensor) for tensor in network.outputs}
    operations: list[Operation] = []
    for op in reversed(network.operations):
        needed_outputs = [tensor for tensor in op.outputs if tensor in needed]
        if not needed_outputs:
            continue
        if needed_outputs[0] not in network.constants:
            operations.append(op)
        elif op.kind in SHAPE_READERS or op.kind in PASS_THROUGH:
            continue
        needed.update(source_of.get(tensor, tensor) for tensor in op.inputs if tensor)
    return operations[::-1], needed


# Attributes and costs of equal operators.
Cache = dict[Hashable, tuple[tuple[int, ...], Cost]]


def _add(
    op: Operation, network: Network, source_of: dict[str, str], needed: set[str], encoded: Encoded, cache: Cache
) -> None:
    site = site_of(op, network)
    kind = operator_kind(op.kind)
    if (key := site.key) not in cache:
        check_fit(site, network.name)
        cache[key] = tuple(int(value) for value in attributes_of(site, kind)), cost_of(site)
    attributes, cost = cache[key]
    sources = {encoded.nodes[tensor] for tensor in [source_of.get(t, t) for t in op.inputs] if tensor in encoded.nodes}
    for tensor in op.outputs:
        if tensor in needed:
            encoded.add(
                tensor, op.kind, OTHER if kind is None else kind, attributes,
                four_dims(network.shape(tensor, op.kind)), cost,
            )  # fmt: skip
            encoded.edges.extend((source, encoded.nodes[tensor]) for source in sources)
            cost = _FREE
