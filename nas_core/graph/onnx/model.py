"""ONNX files as protobuf messages without their weights."""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from typing import Any

from nas_core.files.reading import check_regular
from nas_core.files.writing import os_errors
from nas_core.graph.graph import GraphError
from nas_core.optional import require

KEPT = 1024
"""Largest number of elements of a tensor whose values are kept, such as the shape of a Reshape."""
LARGE = 2**20
"""Minimum file size in bytes for which weights are removed before parsing."""
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
        model = _parsed(_content(path), name, onnx)
    else:
        raise GraphError(f"got {type(source).__name__}; expected the path of an ONNX file, its bytes or a ModelProto")
    if not model.ir_version or not model.HasField("graph") or not model.opset_import:
        raise GraphError(f"{name} is not a complete ONNX model; export it again, or check the file name")
    _strip(model.graph, folder, onnx)
    if model.functions:
        require("onnx.inliner", "reading ONNX files", "onnx")
        model = onnx.inliner.inline_local_functions(model)
    return model, name


def _content(path: Path) -> bytes:
    with os_errors("read", path):
        if check_regular(path).stat().st_size < LARGE:
            return path.read_bytes()
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    try:
        return light(data)
    except ValueError as error:
        raise GraphError(f"{path} is not an ONNX file, or is damaged ({error}); export it again") from None


# Fields of ModelProto and GraphProto: the graph, and its initializers.
_NESTED = (7, 5)
_VALUE_FIELDS = {4, 5, 6, 7, 9, 10, 11}
# Bytes of fixed-size fields of protobuf, by wire type.
_FIXED = {1: 8, 5: 4}
_BYTES = 2


def light(data: memoryview, level: int = 0) -> bytes:
    """Return a protobuf message without long values of initializers.

    Args:
        level: 0 for a ModelProto, 1 for a GraphProto, 2 for a TensorProto.
    """
    parts: list[bytes | memoryview] = []
    place = 0
    while place < len(data):
        start = body = place
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            length, body = _varint(data, place)
            place = body + length
        elif kind in _FIXED:
            place += _FIXED[kind]
        elif kind == 0:
            _, place = _varint(data, place)
        else:
            raise ValueError(f"unknown field type {kind} at byte {start}")
        if place > len(data) or not number:
            raise ValueError(f"invalid field that ends at byte {place} of {len(data)}")
        long = kind == _BYTES and place - body > 16 * KEPT
        if long and level < len(_NESTED) and number == _NESTED[level]:
            inner = light(data[body:place], level + 1)
            parts += [_encoded(key), _encoded(len(inner)), inner]
        elif not (long and level == len(_NESTED) and number in _VALUE_FIELDS):
            parts.append(data[start:place])
    return b"".join(parts)


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise ValueError(f"the file ends inside a number at byte {place}")


def _encoded(value: int) -> bytes:
    more, last = divmod(value, 128)
    return bytes([last | 128]) + _encoded(more) if more else bytes([last])


def _parsed(content: bytes, name: str, onnx: Any) -> Any:
    try:
        return onnx.ModelProto.FromString(content)
    except Exception as error:  # the class depends on the protobuf installed
        raise GraphError(f"{name} is not an ONNX file, or is damaged ({error}); export it again") from None


def _strip(graph: Any, folder: Path | None, onnx: Any) -> None:
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    graph.ClearField("sparse_initializer")
    constants = (attribute.t for node in graph.node if node.op_type == "Constant" for attribute in node.attribute)
    for tensor in (*graph.initializer, *constants):
        small = math.prod(tensor.dims) <= KEPT
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            small = small and folder is not None and _load(tensor, folder)
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
        if not small:
            for field in _VALUES:
                tensor.ClearField(field)


def _load(tensor: Any, folder: Path) -> bool:
    helper = require("onnx.external_data_helper", "reading ONNX files", "onnx")
    try:
        helper.load_external_data_for_tensor(tensor, str(folder))
    except Exception:  # onnx raises many kinds for a file that is absent, short or outside the folder
        return False
    return True
