"""Shapes of all tensors of an ONNX model, given or inferred."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.model import MAX_STORED, open_model
from nas_core.graph.onnx.network import Network, Shape, operations, parameter_inputs, sort_nodes
from nas_core.graph.onnx.operators import SHAPE_READERS
from nas_core.optional import require

Shapes = Mapping[str, Sequence[int] | int]
Dim = int | str | None
"""Dimension of a declared shape: a size, the name of an open dimension, or None."""
Values = dict[str, NDArray[Any]]

# TensorProto's numbers of int32, int64, string, bool, uint32, uint64, which are not weights.
_INDICES = {6, 7, 8, 9, 12, 13}


def read_network(source: Any, shapes: Shapes | None = None, batch: int | None = None) -> Network:
    """Read an ONNX model and infer the shapes of its tensors.

    For arguments, see :func:`nas_core.graph.onnx.reader.read_onnx`.
    """
    model, name = open_model(source)
    operators = sort_nodes(model.graph, operations(model.graph.node), name)
    parameters = parameter_inputs(model.graph, operators)
    inputs = bind_shapes(model, name, parameters, shapes, batch)
    inferred, types = _infer(model, name)
    if any(output and output not in inferred for op in operators for output in op.outputs):
        _infer_by_values(model, name, inferred, types)
    dynamic, constants = set(inputs), set(parameters)
    for op in operators:
        varies = op.kind not in SHAPE_READERS and any(tensor in dynamic for tensor in op.inputs)
        (dynamic if varies else constants).update(filter(None, op.outputs))
    weights = frozenset(tensor for tensor in constants if types.get(tensor, 1) not in _INDICES)
    stored = parameters | {o for op in operators if op.kind == "Constant" for o in op.outputs}
    outputs = tuple(tensor.name for tensor in model.graph.output)
    return Network(name, operators, inputs, outputs, inferred, frozenset(constants), frozenset(stored), weights)


# -- binding -----------------------------------------------------------------------------------------------------------


def bind_shapes(
    model: Any, name: str, parameters: Collection[str], shapes: Shapes | None, batch: int | None
) -> tuple[str, ...]:
    """Set the dimensions of the inputs of a ``ModelProto`` in place, and return the names of the inputs.

    Args:
        parameters: inputs of the graph that are parameters.
        batch: first dimension of all inputs that are not in ``shapes``. It replaces the size in the file.
    """
    graph = model.graph
    inputs = {tensor.name: tensor for tensor in graph.input if tensor.name not in parameters}
    declared = {tensor: _dims(value, name) for tensor, value in inputs.items()}
    fixed, symbols = _checked(shapes or {}, batch)
    tensors = {output for node in graph.node for output in node.output} | set(declared)
    names = {dim for dims in declared.values() if dims for dim in dims if isinstance(dim, str)}
    if unknown := [key for key in fixed if key not in tensors] + [key for key in symbols if key not in names]:
        text = ", ".join(f"{tensor} {_text(dims or [])}" for tensor, dims in declared.items()) or "none"
        raise ConfigError(
            f"{name} has no tensor or variable dimension named {unknown[0]!r}; its inputs are {text}: give one of these"
            " names"
        )
    bound: dict[str, list[Dim]] = {}
    overridden = False
    for tensor, dims in declared.items():
        new: list[Dim] | None = list(fixed[tensor]) if tensor in fixed else dims and list(dims)
        if new is None:
            raise _open(f"{name}: input {tensor!r} has no shape", tensor)
        if dims is not None and len(dims) != len(new):
            raise ConfigError(f"shape of input {tensor!r} of {name} is {tuple(new)}; expected {len(dims)} dimensions")
        if batch is not None and new and tensor not in fixed:
            new[0] = batch
        for old, value in zip(dims or (), new, strict=False):
            if isinstance(old, str) and isinstance(value, int) and symbols.setdefault(old, value) != value:
                raise ConfigError(f"dimension {old!r} of {name} is both {symbols[old]} and {value}; expected one size")
            overridden |= isinstance(old, int) and old != value
        bound[tensor] = new
    for tensor, dims in bound.items():
        final = [symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in dims]
        if open_dims := [dim or "?" for dim in final if not isinstance(dim, int)]:
            problem = f"{name}: dimension {open_dims[0]} of input {tensor!r} {_text(dims)} has no size"
            raise _open(problem, tensor, dims, batch=final[0] == open_dims[0])
        _set(inputs[tensor], final)
    extra = {key: shape for key, shape in fixed.items() if key not in inputs}
    if symbols or overridden or extra:
        _update_stated(graph, symbols, overridden, extra)
    return tuple(inputs)


def _open(problem: str, tensor: str, dims: Iterable[Dim] = (1, 3, 224, 224), batch: bool = False) -> GraphError:
    sizes = [str(dim if isinstance(dim, int) else 1) for dim in dims]
    comma = "," * (len(sizes) == 1)
    return GraphError(
        f"{problem}; give shapes={{{tensor!r}: ({', '.join(sizes)}{comma})}} with your sizes{', or batch=1' * batch}",
        command_line=f"{problem}; give --shapes {tensor}={','.join(sizes)}{comma} with your sizes"
        f"{', or --batch 1' * batch}",
    )


def _checked(shapes: Any, batch: int | None) -> tuple[dict[str, Shape], dict[str, int]]:
    if not isinstance(shapes, Mapping):
        problem = f"shapes have type {type(shapes).__name__}; expected"
        raise ConfigError(
            f"{problem} shapes={{'input': (1, 3, 224, 224)}}", command_line=f"{problem} --shapes input=1,3,224,224"
        )
    fixed: dict[str, Shape] = {}
    symbols: dict[str, int] = {}
    for key, value in shapes.items():
        sizes = np.asarray(value)
        if not _are_sizes(sizes):
            problem = f"shape of {key!r} is {value!r}; expected integers above 0"
            raise ConfigError(
                f"{problem}, such as (1, 3, 224, 224)", command_line=f"{problem}, such as --shapes {key}=1,3,224,224"
            )
        if sizes.ndim:
            fixed[key] = tuple(sizes.tolist())
        else:
            symbols[key] = int(sizes)
    if batch is not None and not _are_sizes(np.asarray(batch)):
        problem = f"is {batch!r}; expected an integer above 0"
        raise ConfigError(f"batch {problem}", command_line=f"--batch {problem}")
    return fixed, symbols


def _are_sizes(sizes: NDArray[Any]) -> bool:
    return sizes.dtype.kind in "iu" and sizes.min(initial=1) > 0


def _update_stated(graph: Any, symbols: Mapping[str, int], overridden: bool, extra: Mapping[str, Shape]) -> None:
    for index in reversed(range(len(graph.value_info))):
        tensor = graph.value_info[index]
        if overridden or tensor.name in extra or not _resolve(tensor, symbols):
            del graph.value_info[index]
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
        raise GraphError(f"{name}: input {tensor.name!r} is not a tensor; expected a network whose inputs are tensors")
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
        raise GraphError(f"{name}: shapes of tensors cannot be inferred ({error}); export it again") from None
    shapes: dict[str, Shape] = {}
    types: dict[str, int] = {}
    for tensor in (*graph.input, *graph.value_info, *graph.output):
        stated = tensor.type.tensor_type
        if not tensor.type.HasField("tensor_type"):
            shapes[tensor.name] = ()  # a sequence or an optional value: nothing to measure
        elif stated.HasField("shape") and all(dim.HasField("dim_value") for dim in stated.shape.dim):
            shapes[tensor.name] = tuple(dim.dim_value for dim in stated.shape.dim)
        types.setdefault(tensor.name, stated.elem_type)
    for tensor in graph.initializer:
        shapes[tensor.name], types[tensor.name] = tuple(tensor.dims), tensor.data_type
    return shapes, types


def _infer_by_values(model: Any, name: str, inferred: dict[str, Shape], types: dict[str, int]) -> None:
    """Add shapes that onnx cannot infer: compute small constants, then infer again."""
    onnx = require("onnx", "reading ONNX files", "onnx")
    for module in ("onnx.reference", "onnx.numpy_helper", "onnx.helper"):
        require(module, "reading ONNX files", "onnx")
    graph, values = model.graph, Values()
    for tensor in graph.initializer:
        if math.prod(tensor.dims) <= MAX_STORED and tensor.data_type:
            with suppress(Exception):  # its values are in a file that is absent, or were removed
                values[tensor.name] = onnx.numpy_helper.to_array(tensor)
    while True:
        before, nodes = set(values), []
        for node in graph.node:
            _evaluate(node, model, inferred, values, onnx)
            if not values.keys() >= set(node.output):
                nodes.append(node)
        if values.keys() == before:
            return
        new = {tensor: value for tensor, value in values.items() if tensor not in before}
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
        graph.initializer.extend(onnx.numpy_helper.from_array(value, tensor) for tensor, value in new.items())
        shapes, inferred_types = _infer(model, name)
        inferred |= {tensor: shape for tensor, shape in shapes.items() if tensor not in inferred}
        types |= {tensor: kind for tensor, kind in inferred_types.items() if tensor not in types}


def _evaluate(node: Any, model: Any, inferred: Mapping[str, Shape], values: Values, onnx: Any) -> None:
    outputs = [output for output in node.output if output]
    if any(math.prod(inferred.get(output, ())) > MAX_STORED for output in outputs):
        return
    read = [tensor for tensor in node.input if tensor]
    if node.op_type in SHAPE_READERS and read[0] in inferred:
        feeds = {read[0]: np.broadcast_to(np.float32(0), inferred[read[0]])}
    elif all(tensor in values for tensor in read):
        feeds = {tensor: values[tensor] for tensor in read}
    else:
        return
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info(o, 0, None) for o in outputs])
    with suppress(Exception):  # an operator that the reference does not have: its results stay unknown
        single_node = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
        results = map(np.asarray, onnx.reference.ReferenceEvaluator(single_node).run(None, feeds))
        values.update((o, result) for o, result in zip(outputs, results, strict=False) if result.size <= MAX_STORED)
