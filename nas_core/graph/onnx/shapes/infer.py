"""A network with the shapes of all its tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.network import Network, Operation, Shape, operations, parameter_inputs
from nas_core.graph.onnx.operators import SHAPE_READERS
from nas_core.graph.onnx.shapes.binding import Shapes, bind_shapes
from nas_core.graph.onnx.shapes.growth import values_stay_small
from nas_core.graph.onnx.shapes.stepwise import infer_stepwise
from nas_core.graph.onnx.source import open_model
from nas_core.graph.onnx.topological_order import sort_nodes
from nas_core.optional import require

_INDICES = {6, 7, 8, 9, 12, 13}
"""TensorProto's numbers of int32, int64, string, bool, uint32, uint64: no weights."""


def read_network(source: Any, shapes: Shapes | None = None, batch: int | None = None) -> Network:
    """Open a model, bind its shapes and infer the others; see ``read_onnx``."""
    model, name = open_model(source)
    listed = sort_nodes(model.graph, operations(model.graph.node), name)
    parameters = parameter_inputs(model.graph, listed)
    inputs = bind_shapes(model, name, parameters, shapes, batch)
    known, kinds = _infer(model, name)
    if any(output and output not in known for op in listed for output in op.outputs):
        infer_stepwise(model, known, kinds)
    constants = _constants(listed, inputs, parameters)
    weights = frozenset(tensor for tensor in constants if kinds.get(tensor, 1) not in _INDICES)
    stored = parameters | {o for op in listed if op.kind == "Constant" for o in op.outputs}
    outputs = tuple(tensor.name for tensor in model.graph.output)
    return Network(name, listed, inputs, outputs, known, constants, frozenset(stored), weights)


def _infer(model: Any, name: str) -> tuple[dict[str, Shape], dict[str, int]]:
    """Shapes and element types of all tensors for which onnx finds them."""
    inference = require("onnx.shape_inference", "reading ONNX files", "onnx")
    try:
        inferred = inference.infer_shapes(model, data_prop=values_stay_small(model.graph.node))
    except Exception as error:  # onnx raises several classes, and protobuf its own above 2 GB
        raise GraphError(f"{name}: the shapes of its tensors cannot be inferred ({error}); export it again") from None
    graph = inferred.graph
    known: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    kinds: dict[str, int] = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for part in (graph.input, graph.value_info, graph.output):
        _add(part, known, kinds)
    return known, kinds


def _add(tensors: Iterable[Any], known: dict[str, Shape], kinds: dict[str, int]) -> None:
    for tensor in tensors:
        name = tensor.name
        if name in known:
            continue
        stated = tensor.type.tensor_type
        sizes = tuple([dim.dim_value for dim in stated.shape.dim])
        if sizes and all(sizes):
            known[name] = sizes
        elif not tensor.type.HasField("tensor_type"):
            known[name] = ()  # a sequence or an optional value: nothing to measure
        elif stated.HasField("shape") and all(dim.HasField("dim_value") for dim in stated.shape.dim):
            known[name] = sizes
        kinds.setdefault(name, stated.elem_type)


def _constants(listed: Iterable[Operation], inputs: Iterable[str], parameters: Iterable[str]) -> frozenset[str]:
    live = set(inputs)
    constants = set(parameters)
    for op in listed:
        varies = op.kind not in SHAPE_READERS and any(tensor in live for tensor in op.inputs)
        (live if varies else constants).update(filter(None, op.outputs))
    return frozenset(constants)
