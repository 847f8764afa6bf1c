"""ONNX files as protobuf messages without their weights."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nas_core.errors import NasExtError
from nas_core.files import check_regular
from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.skim import skim
from nas_core.graph.onnx.written_out import check_operators
from nas_core.optional import require

LIMIT = 2**31 - 1
"""Bytes of a protobuf message at most."""
LARGE = 2**20
"""Bytes from which a file is not parsed with its weights."""
KEPT = 1024
"""Elements of an initializer whose values are kept: they may be the shape of a Reshape."""
_VALUES = (
    "raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data", "external_data",
)  # fmt: skip


def open_model(source: Any) -> tuple[Any, str]:
    """A ``ModelProto`` of our own that may be changed, and a name for messages. Weights are dropped: only their shapes
    and types stay; external data are read where a small tensor may be a shape, and otherwise need not exist.

    Args:
        source: a path, the bytes of a file, or an ``onnx.ModelProto``, which is left as it is.

    Raises:
        GraphError: no such file, no ONNX model, a damaged one, one of more than 2 GB, or one without operators.
        MissingHostError: onnx is not installed.
    """
    onnx = require("onnx", "reading ONNX files", "onnx")
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        name, model = source.graph.name or "the ONNX model", _without_weights(source, onnx)
    elif isinstance(source, bytes):
        name, model = "the ONNX model", _parsed(source, "the ONNX model", onnx)
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        name, folder = str(path), path.parent
        model = _parsed(_content(path), name, onnx)
    else:
        raise GraphError(f"got {type(source).__name__}; expected the path of an ONNX file, its bytes or a ModelProto")
    if not model.ir_version or not model.HasField("graph") or not model.opset_import:
        raise GraphError(f"{name} is no ONNX model, or only a part of one; export it again, or check the file's name")
    if not model.graph.node:
        raise GraphError(f"{name} has no operators; expected a network")
    _strip(model.graph, folder, onnx)
    check_operators(model, name)
    if model.functions:
        require("onnx.inliner", "reading ONNX files", "onnx")
        model = onnx.inliner.inline_local_functions(model)
    return model, name


def _content(path: Path) -> bytes:
    try:
        size = check_regular(path).stat().st_size
        if size > LIMIT:
            raise GraphError(
                f"{path} has {size / 2**30:.1f} GB, which no ONNX file can have; save it with external data "
                "(onnx.save(..., save_as_external_data=True)), of which this reader needs none"
            )
        if size < LARGE:
            return path.read_bytes()
        with path.open("rb") as file:
            return _skimmed(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(path))
    except NasExtError as error:
        raise GraphError(str(error)) from None
    except OSError as error:
        raise GraphError(f"cannot read {path}: {error.strerror or error}; expected an ONNX file") from None


def _skimmed(data: mmap.mmap, name: str) -> bytes:
    try:
        return skim(memoryview(data), 16 * KEPT)
    except ValueError as error:
        raise GraphError(f"{name} is no ONNX file, or a damaged one ({error}); export it again") from None


def _parsed(content: bytes, name: str, onnx: Any) -> Any:
    if not content:
        raise GraphError(f"{name} is empty; expected an ONNX file")
    try:
        return onnx.ModelProto.FromString(content)
    except Exception as error:  # the class depends on the protobuf installed
        raise GraphError(f"{name} is no ONNX file, or a damaged one ({error}); export it again") from None


def _without_weights(model: Any, onnx: Any) -> Any:
    """A copy that never holds the large initializers."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    if not model.HasField("graph"):
        return light
    graph = light.graph
    graph.name = model.graph.name
    for part in ("node", "input", "output", "value_info"):
        getattr(graph, part).extend(getattr(model.graph, part))
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= KEPT:
            graph.initializer.add().CopyFrom(tensor)
        else:
            graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    for sparse in model.graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    return light


def _strip(graph: Any, folder: Path | None, onnx: Any) -> None:
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    graph.ClearField("sparse_initializer")
    for tensor in _tensors(graph, onnx):
        small = math.prod(tensor.dims) <= KEPT
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if small and folder is not None and _load(tensor, folder, onnx):
                continue
            tensor.ClearField("data_location")
            small = False
        if not small:
            for field in _VALUES:
                tensor.ClearField(field)


def _tensors(graph: Any, onnx: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)


def _load(tensor: Any, folder: Path, onnx: Any) -> bool:
    """Read the values of an external tensor; False where they are absent."""
    helper = require("onnx.external_data_helper", "reading ONNX files", "onnx")
    try:
        helper.load_external_data_for_tensor(tensor, str(folder))
    except Exception:  # onnx raises many kinds for a file that is absent, short or outside the folder
        return False
    tensor.data_location = onnx.TensorProto.DEFAULT
    tensor.ClearField("external_data")
    return True
