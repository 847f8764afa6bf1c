"""Shapes of all tensors of an ONNX model, bound or inferred."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.model import KEPT, open_model
from nas_core.graph.onnx.network import Network, Operation, Shape, operations, parameter_inputs, sort_nodes
from nas_core.graph.onnx.operators import SHAPE_READERS
from nas_core.optional import require

Shapes = Mapping[str, Sequence[int] | int]
Dim = int | str | None
"""Dimension of a declared shape: a number, the name of an open dimension, or neither."""
Values = dict[str, NDArray[Any]]

_INDICES = {6, 7, 8, 9, 12, 13}
"""TensorProto's numbers of int32, int64, string, bool, uint32, uint64, which are not weights."""


def read_network(source: Any, shapes: Shapes | None = None, batch: int | None = None) -> Network:
    """Read a model, bind its open dimensions and infer other shapes; see ``read_onnx``."""
    model, name = open_model(source)
    listed = sort_nodes(model.graph, operations(model.graph.node), name)
    parameters = parameter_inputs(model.graph, listed)
    inputs = bind_shapes(model, name, parameters, shapes, batch)
    known, kinds = _infer(model, name)
    if any(output and output not in known for op in listed for output in op.outputs):
        _infer_stepwise(model, known, kinds)
    constants = _constants(listed, inputs, parameters)
    weights = frozenset(tensor for tensor in constants if kinds.get(tensor, 1) not in _INDICES)
    stored = parameters | {o for op in listed if op.kind == "Constant" for o in op.outputs}
    outputs = tuple(tensor.name for tensor in model.graph.output)
    return Network(name, listed, inputs, outputs, known, constants, frozenset(stored), weights)


def _constants(listed: Iterable[Operation], inputs: Iterable[str], parameters: Iterable[str]) -> frozenset[str]:
    live = set(inputs)
    constants = set(parameters)
    for op in listed:
        varies = op.kind not in SHAPE_READERS and any(tensor in live for tensor in op.inputs)
        (live if varies else constants).update(filter(None, op.outputs))
    return frozenset(constants)


# -- binding -----------------------------------------------------------------------------------------------------------


def bind_shapes(
    model: Any, name: str, parameters: Collection[str], shapes: Shapes | None, batch: int | None
) -> tuple[str, ...]:
    """Set the dimensions of the inputs of a ``ModelProto`` in place, and return the inputs' names.

    Args:
        parameters: inputs of the graph that are parameters.
        batch: first dimension of all inputs without a shape in ``shapes``; it overrides the file.
    """
    graph = model.graph
    inputs = {tensor.name: tensor for tensor in graph.input if tensor.name not in parameters}
    declared = {tensor: _dims(value, name) for tensor, value in inputs.items()}
    fixed, symbols = _checked(shapes or {}, batch)
    tensors = {output for node in graph.node for output in node.output} | set(declared)
    names = {dim for dims in declared.values() if dims for dim in dims if isinstance(dim, str)}
    if unknown := [key for key in fixed if key not in tensors] + [key for key in symbols if key not in names]:
        text = ", ".join(f"{tensor} {_text(dims or [])}" for tensor, dims in declared.items()) or "none"
        raise ConfigError(f"{name} has no tensor and no open dimension {unknown[0]!r}; its inputs are {text}")
    bound: dict[str, list[Dim]] = {}
    overridden = False
    for tensor, dims in declared.items():
        new: list[Dim] | None = list(fixed[tensor]) if tensor in fixed else dims and list(dims)
        if new is None:
            raise _open(f"{name}: input {tensor!r} has no shape", tensor)
        if dims is not None and len(dims) != len(new):
            raise ConfigError(f"shape {tuple(new)} for input {tensor!r} of {name}; expected {len(dims)} dimensions")
        if batch is not None and new and tensor not in fixed:
            new[0] = batch
        for old, value in zip(dims or (), new, strict=False):
            if isinstance(old, str) and isinstance(value, int) and symbols.setdefault(old, value) != value:
                raise ConfigError(f"dimension {old!r} of {name} is {symbols[old]} and {value}; expected one number")
            overridden |= isinstance(old, int) and old != value
        bound[tensor] = new
    for tensor, dims in bound.items():
        final = [symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in dims]
        if open_dims := [dim or "?" for dim in final if not isinstance(dim, int)]:
            what = f"{name}: dimension {open_dims[0]} of input {tensor!r} {_text(dims)} has no number"
            raise _open(what, tensor, dims, batch=final[0] == open_dims[0])
        _set(inputs[tensor], final)
    extra = {key: shape for key, shape in fixed.items() if key not in inputs}
    if symbols or overridden or extra:
        _update_stated(graph, symbols, overridden, extra)
    return tuple(inputs)


def _open(what: str, tensor: str, dims: Iterable[Dim] = (1, 3, 224, 224), batch: bool = False) -> GraphError:
    sizes = [str(dim if isinstance(dim, int) else 1) for dim in dims]
    comma = "," * (len(sizes) == 1)
    return GraphError(
        f"{what}; give shapes={{{tensor!r}: ({', '.join(sizes)}{comma})}} with your sizes{', or batch=1' * batch}",
        command_line=f"{what}; give --shapes {tensor}={','.join(sizes)}{comma} with your sizes"
        f"{', or --batch 1' * batch}",
    )


def _checked(shapes: Any, batch: int | None) -> tuple[dict[str, Shape], dict[str, int]]:
    if not isinstance(shapes, Mapping):
        what = f"shapes are a {type(shapes).__name__}; expected"
        raise ConfigError(
            f"{what} shapes={{'input': (1, 3, 224, 224)}}", command_line=f"{what} --shapes input=1,3,224,224"
        )
    fixed: dict[str, Shape] = {}
    symbols: dict[str, int] = {}
    for key, value in shapes.items():
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        sizes: tuple[Any, ...] = tuple(value) if several else (value,)
        if not all(map(_is_size, sizes)):
            what = f"shape {value!r} of {key!r}; expected whole numbers above 0"
            raise ConfigError(
                f"{what}, such as (1, 3, 224, 224)", command_line=f"{what}, such as --shapes {key}=1,3,224,224"
            )
        if several:
            fixed[key] = tuple(map(int, sizes))
        else:
            symbols[key] = int(sizes[0])
    if batch is not None and not _is_size(batch):
        what = f"is {batch!r}; expected a whole number above 0"
        raise ConfigError(f"batch {what}", command_line=f"--batch {what}")
    return fixed, symbols


def _is_size(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and value is not True and int(value) > 0


def _update_stated(graph: Any, symbols: Mapping[str, int], overridden: bool, extra: Mapping[str, Shape]) -> None:
    for place in reversed(range(len(graph.value_info))):
        tensor = graph.value_info[place]
        if overridden or tensor.name in extra or not _resolve(tensor, symbols):
            del graph.value_info[place]
    for tensor in graph.output:
        if tensor.type.HasField("tensor_type") and (overridden or not _resolve(tensor, symbols)):
            tensor.type.tensor_type.ClearField("shape")
    outputs = {tensor.name: tensor for tensor in graph.output}
    for key, shape in extra.items():
        _set(outputs[key] if key in outputs else graph.value_info.add(name=key), shape)


def _resolve(tensor: Any, symbols: Mapping[str, int]) -> bool:
    if not tensor.type.HasField("tensor_type"):
        return True
    for dim in tensor.type.tensor_type.shape.dim:
        if not dim.HasField("dim_value"):
            if dim.dim_param not in symbols:
                return False
            dim.dim_value = symbols[dim.dim_param]
    return bool(tensor.type.tensor_type.HasField("shape"))


def _dims(tensor: Any, name: str) -> list[Dim] | None:
    if not tensor.type.HasField("tensor_type"):
        raise GraphError(f"{name}: input {tensor.name!r} is no tensor; expected a network that is fed tensors")
    if not tensor.type.tensor_type.HasField("shape"):
        return None
    return [dim.dim_value if dim.dim_value > 0 else dim.dim_param or None for dim in tensor.type.tensor_type.shape.dim]


def _set(tensor: Any, shape: Iterable[Any]) -> None:
    tensor_type = tensor.type.tensor_type
    tensor_type.elem_type = tensor_type.elem_type or 1
    tensor_type.ClearField("shape")
    tensor_type.shape.SetInParent()
    for size in shape:
        tensor_type.shape.dim.add(dim_value=size)


def _text(dims: Sequence[Dim]) -> str:
    return f"({', '.join(str(dim or '?') for dim in dims)})"


# -- inference ---------------------------------------------------------------------------------------------------------


def _infer(model: Any, name: str) -> tuple[dict[str, Shape], dict[str, int]]:
    inference = require("onnx.shape_inference", "reading ONNX files", "onnx")
    try:
        graph = inference.infer_shapes(model, data_prop=True).graph
    except Exception as error:  # onnx raises several classes, and protobuf its own above 2 GB
        raise GraphError(f"{name}: the shapes of its tensors cannot be inferred ({error}); export it again") from None
    known: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    kinds: dict[str, int] = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for tensor in (*graph.input, *graph.value_info, *graph.output):
        if tensor.name in known:
            continue
        stated = tensor.type.tensor_type
        sizes = tuple(dim.dim_value for dim in stated.shape.dim)
        if not tensor.type.HasField("tensor_type"):
            known[tensor.name] = ()  # a sequence or an optional value: nothing to measure
        elif stated.HasField("shape") and all(dim.HasField("dim_value") for dim in stated.shape.dim):
            known[tensor.name] = sizes
        kinds.setdefault(tensor.name, stated.elem_type)
    return known, kinds


def _infer_stepwise(model: Any, known: dict[str, Shape], kinds: dict[str, int]) -> None:
    """Add shapes that onnx's inference misses, by its reference implementation of small constants."""
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
        except Exception:  # its values are in a file that is absent, or were removed
            return


def _infer_node(
    node: Any, model: Any, known: dict[str, Shape], kinds: dict[str, int], values: Mapping[str, Any], onnx: Any
) -> None:
    read = [tensor for tensor in node.input if tensor]
    if not all(tensor in known for tensor in read):
        return
    versions = {imported.domain: imported.version for imported in model.opset_import}
    types = {tensor: onnx.helper.make_tensor_type_proto(kinds.get(tensor, 1), known[tensor]) for tensor in read}
    data = {tensor: onnx.numpy_helper.from_array(values[tensor], tensor) for tensor in read if tensor in values}
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        inferred = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=list(model.opset_import), ir_version=model.ir_version
        )
    except Exception:  # an operator of another domain, or one that does not fit its inputs: its shape stays unknown
        return
    for output, kind in inferred.items():
        dims = kind.tensor_type.shape.dim
        if kind.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
            known.setdefault(output, tuple(dim.dim_value for dim in dims))
            kinds.setdefault(output, kind.tensor_type.elem_type)


def _evaluate(node: Any, model: Any, known: Mapping[str, Shape], values: Values, onnx: Any) -> None:
    outputs = [output for output in node.output if output]
    if any(math.prod(known.get(output, (KEPT + 1,))) > KEPT for output in outputs):
        return
    read = [tensor for tensor in node.input if tensor]
    if node.op_type in SHAPE_READERS and read[0] in known:
        feeds = {read[0]: np.broadcast_to(np.float32(0), known[read[0]])}
    elif read and all(tensor in values for tensor in read):
        feeds = {tensor: values[tensor] for tensor in read}
    else:
        return
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info(o, 0, None) for o in outputs])
    try:
        alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
        results = onnx.reference.ReferenceEvaluator(alone).run(None, feeds)
    except Exception:  # an operator that the reference does not have: its results stay unknown
        return
    values.update(zip(outputs, map(np.asarray, results), strict=False))
