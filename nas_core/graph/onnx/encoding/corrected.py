"""Our encoding of ONNX operators: what a runtime computes, and nothing else.

Where it differs from the released encoding: constants are no nodes (parameters, and all that follows from parameters
and shapes alone), nor are Identity and Dropout, nor what reaches no output; kernels have all their dimensions; every
attribute has a column of its own; shapes of more than four dimensions keep their number of elements; kinds of
operators cover ONNX's own and the fused ones of onnxruntime; costs are those of
:mod:`nas_core.graph.onnx.encoding.costs`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.encoding.attributes import ATTRIBUTES, attributes_of, four_dims
from nas_core.graph.onnx.encoding.costs import Cost, cost_of
from nas_core.graph.onnx.encoding.nodes import FREE, Encoded, batch_of
from nas_core.graph.onnx.network import Network, Operation
from nas_core.graph.onnx.operators import INPUT, OTHER, PASSED, SHAPE_READERS, operator_kind
from nas_core.graph.onnx.shapes.check import check_fit
from nas_core.graph.onnx.site import site_of


def encode_corrected(network: Network) -> Encoded:
    """Encode a network by what a runtime computes.

    Raises:
        GraphError: no output depends on an input, a shape is not known, or shapes do not fit.
    """
    same: dict[str, str] = {}
    copies: set[str] = set()
    for op in network.operations:
        if op.kind in PASSED and op.outputs[0] in network.constants:
            copies.add(op.outputs[0])  # exporters so join parameters that happen to be equal before training
        elif op.kind in PASSED:
            same[op.outputs[0]] = same.get(op.inputs[0], op.inputs[0])
    kept, needed = _needed(network, same)
    made = Encoded(batch_of(network))
    for tensor in network.inputs:
        if tensor in needed:
            made.add(tensor, "Input", INPUT, (0,) * len(ATTRIBUTES), four_dims(network.shape(tensor)))
    unknown: Counter[str] = Counter()
    alike: Alike = {}
    for op in kept:
        _add(op, network, same, needed, made, alike)
        if operator_kind(op.kind) is None:
            unknown[op.kind] += 1
    if len(made.ops) == 0 or len(made.edges) == 0:
        raise GraphError(f"{network.name}: no operator turns an input into an output; expected a network")
    weights = network.weights & (network.stored | copies) & needed
    params = sum(math.prod(shape) for shape in (network.shapes.get(tensor, ()) for tensor in weights) if shape)
    made.total = Cost(sum(c.flops for c in made.costs), params, sum(c.access for c in made.costs))
    made.unknown = dict(unknown)
    return made


def _needed(network: Network, same: dict[str, str]) -> tuple[list[Operation], set[str]]:
    """Operators between inputs and outputs, and all tensors that are needed for the outputs."""
    needed = {same.get(tensor, tensor) for tensor in network.outputs}
    kept: list[Operation] = []
    for op in reversed(network.operations):
        used = [tensor for tensor in op.outputs if tensor in needed]
        if not used:
            continue
        if used[0] not in network.constants:
            kept.append(op)
        elif op.kind in SHAPE_READERS or op.kind in PASSED:
            continue
        needed.update(same.get(tensor, tensor) for tensor in op.inputs if tensor)
    return kept[::-1], needed


Alike = dict[Hashable, tuple[tuple[int, ...], Cost]]
"""Attributes and cost of operators that were met before: networks repeat themselves."""


def _add(op: Operation, network: Network, same: dict[str, str], needed: set[str], made: Encoded, alike: Alike) -> None:
    site = site_of(op, network)
    kind = operator_kind(op.kind)
    if (key := site.key) not in alike:
        check_fit(site, network.name)
        alike[key] = tuple(int(value) for value in attributes_of(site, kind)), cost_of(site)
    attributes, cost = alike[key]
    sources = {made.nodes[tensor] for tensor in [same.get(t, t) for t in op.inputs] if tensor in made.nodes}
    for tensor in op.outputs:
        if tensor in needed:
            made.add(
                tensor, op.kind, OTHER if kind is None else kind, attributes,
                four_dims(network.shape(tensor, op.kind)), cost,
            )  # fmt: skip
            made.edges.extend((source, made.nodes[tensor]) for source in sources)
            cost = FREE
