"""Shapes that follow from computed numbers, one operator after the other.

Exports with open dimensions compute the shapes of their reshapes with operators: the sizes of a tensor, divided,
multiplied, put together. What onnx does not carry through such a computation is computed here, once the dimensions of
the inputs are numbers: small constants are evaluated by onnx's reference implementation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.onnx.network import Shape
from nas_core.graph.onnx.operators import SHAPE_READERS
from nas_core.graph.onnx.source import KEPT
from nas_core.optional import require

Values = dict[str, NDArray[Any]]


def infer_stepwise(model: Any, known: dict[str, Shape], kinds: dict[str, int]) -> None:
    """Add what can be found to ``known`` and ``kinds``; nodes must be in topological order."""
    onnx = require("onnx", "reading ONNX files", "onnx")
    for module in ("onnx.shape_inference", "onnx.reference", "onnx.numpy_helper", "onnx.helper", "onnx.defs"):
        require(module, "reading ONNX files", "onnx")
    values: Values = {}
    for tensor in model.graph.initializer:
        _keep(tensor, tensor.name, values, onnx)
    for node in model.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    _keep(attribute.t, node.output[0], values, onnx)
        if any(output and output not in known for output in node.output):
            _infer_node(node, model, known, kinds, values, onnx)
        _evaluate(node, model, known, values, onnx)


def _keep(tensor: Any, name: str, values: Values, onnx: Any) -> None:
    if math.prod(tensor.dims) <= KEPT and tensor.data_type:
        try:
            values[name] = onnx.numpy_helper.to_array(tensor)
        except Exception:  # its values are in a file that is absent, or were taken out
            return


def _infer_node(
    node: Any, model: Any, known: dict[str, Shape], kinds: dict[str, int], values: Mapping[str, Any], onnx: Any
) -> None:
    versions = {imported.domain: imported.version for imported in model.opset_import}
    types, data = {}, {}
    for tensor in filter(None, node.input):
        if tensor not in known:
            return
        types[tensor] = onnx.helper.make_tensor_type_proto(kinds.get(tensor, 1), known[tensor])
        if tensor in values:
            data[tensor] = onnx.numpy_helper.from_array(values[tensor], tensor)
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        found = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=list(model.opset_import), ir_version=model.ir_version
        )
    except Exception:  # an operator of another domain, or one that does not fit its inputs: its shape stays unknown
        return
    for output, kind in found.items():
        dims = kind.tensor_type.shape.dim
        if kind.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            known.setdefault(output, tuple(dim.dim_value for dim in dims))
            kinds.setdefault(output, kind.tensor_type.elem_type)


def _evaluate(node: Any, model: Any, known: Mapping[str, Shape], values: Values, onnx: Any) -> None:
    """The values of small constants that follow from others, or from the sizes of a tensor."""
    if any(math.prod(known.get(output, (KEPT + 1,))) > KEPT for output in node.output if output):
        return
    read = [tensor for tensor in node.input if tensor]
    if node.op_type in SHAPE_READERS and read[0] in known:
        feeds = {read[0]: np.broadcast_to(np.float32(0), known[read[0]])}
    elif read and all(tensor in values for tensor in read):
        feeds = {tensor: values[tensor] for tensor in read}
    else:
        return
    try:
        evaluator = onnx.reference.ReferenceEvaluator(_alone(node, feeds, model, onnx))
        results = evaluator.run(None, feeds)
    except Exception:  # an operator that the reference does not have: what depends on it stays unknown
        return
    values.update(zip((output for output in node.output if output), map(np.asarray, results), strict=False))


def _alone(node: Any, feeds: Mapping[str, NDArray[Any]], model: Any, onnx: Any) -> Any:
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info(output, 0, None) for output in node.output if output]
    graph = helper.make_graph([node], "one", inputs, outputs)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
