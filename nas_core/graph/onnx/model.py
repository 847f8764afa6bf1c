"""ONNX files as protobuf messages without their weights."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from nas_core.files.reading import read_bytes
from nas_core.graph.graph import GraphError
from nas_core.optional import require

MAX_STORED = 1024
"""Largest number of elements of a tensor whose values are kept, such as the shape of a Reshape."""
_MAX_BYTES = 2**31  # maximum size of a protobuf message; larger models have their weights in other files
_VALUES = (
    "raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data", "external_data",
)  # fmt: skip


def open_model(source: Any) -> tuple[Any, str]:
    """Return a copy of an ONNX model without the values of large tensors, and its name for messages.

    Local functions are inlined.
    """
    onnx = require("onnx", "reading ONNX files", "onnx")
    folder: Path | None = None
    name = "the ONNX model"
    if isinstance(source, onnx.ModelProto):
        name, model = source.graph.name or name, onnx.ModelProto()
        model.CopyFrom(source)
    elif isinstance(source, bytes):
        model = _parsed(source, name, onnx)
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        name, folder = str(path), path.parent
        model = _parsed(read_bytes(path, _MAX_BYTES), name, onnx)
    else:
        raise GraphError(f"got {type(source).__name__}; expected the path of an ONNX file, its bytes or a ModelProto")
    if not model.ir_version or not model.HasField("graph") or not model.opset_import:
        raise GraphError(f"{name} is not a complete ONNX model; export it again, or check the file name")
    _strip_weights(model.graph, folder, onnx)
    if model.functions:
        require("onnx.inliner", "reading ONNX files", "onnx")
        model = onnx.inliner.inline_local_functions(model)
    return model, name


def _parsed(content: bytes, name: str, onnx: Any) -> Any:
    try:
        return onnx.ModelProto.FromString(content)
    except Exception as error:  # the class depends on the protobuf installed
        raise GraphError(f"{name} is not an ONNX file, or is damaged ({error}); export it again") from None


def _strip_weights(graph: Any, folder: Path | None, onnx: Any) -> None:
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    graph.ClearField("sparse_initializer")
    for tensor in stored_tensors(graph):
        small = math.prod(tensor.dims) <= MAX_STORED
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            small = small and folder is not None and _load(tensor, folder)
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
        if not small:
            clear_values(tensor)


def stored_tensors(graph: Any) -> list[Any]:
    """Return the initializers of a ``GraphProto`` and the tensors of its Constant operators."""
    constants = (attribute.t for node in graph.node if node.op_type == "Constant" for attribute in node.attribute)
    return [*graph.initializer, *constants]


def clear_values(tensor: Any) -> None:
    """Remove the values of a ``TensorProto``, and references to files with them."""
    for field in _VALUES:
        tensor.ClearField(field)


def _load(tensor: Any, folder: Path) -> bool:
    helper = require("onnx.external_data_helper", "reading ONNX files", "onnx")
    try:
        helper.load_external_data_for_tensor(tensor, str(folder))
    except Exception:  # onnx raises many kinds for a file that is absent, short or outside the folder
        return False
    return True
