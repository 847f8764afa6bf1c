"""Tracing a part, and writing it as ONNX or as a ``torch.export`` program.

Both start from ``torch.export``, whose open dimensions are stated and proved, not found by one run. torch's older
exporter, by tracing, is deprecated, and makes twice as many nodes of an encoder (352 for 166).
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from nas_core.errors import NasExtError
from nas_core.export.parts import ExportError, Part, reason_of
from nas_core.optional import require

OPSET = 20
LARGEST = 2**31 - 2**24
"""Bytes of weights from which they are written beside the graph, as no ONNX file may have 2 GB."""
_TRACED_SIZE = 5
_NOISY = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")


def trace(part: Part) -> ExportedProgram:
    """The part with open dimensions.

    Raises:
        ExportError: torch cannot follow the model.
    """
    dims = {dim.name: Dim(dim.name, max=dim.largest) for dim in part.dims}
    shapes = [{at: dims[dim] for at, dim in enumerate(v.shape) if isinstance(dim, str)} for v in part.inputs]
    examples = part.examples(_TRACED_SIZE)
    packed = _packed(part, shapes)
    try:
        with torch.no_grad(), _quiet():
            program = torch.export.export(part.module, examples, dynamic_shapes=packed, strict=False)
    except NasExtError:
        raise
    except Exception as error:  # whatever the first operation that cannot be followed raises
        raise ExportError(f"torch.export cannot follow {part.name} ({reason_of(error)}); report this model") from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # has paths of this machine
    return program


def _packed(part: Part, shapes: list[dict[int, Any]]) -> tuple[Any, ...]:
    """Arrange the inputs as ``forward`` takes them: what goes to ``*rest`` is one tuple."""
    code = part.module.forward.__code__
    named = code.co_argcount - 1
    return (*shapes[:named], tuple(shapes[named:])) if len(shapes) > named else tuple(shapes)


def write_onnx(program: ExportedProgram, part: Part, path: Path) -> None:
    """Write ``path``, and ``path`` with ``.data`` appended if the weights are too large for one file.

    Raises:
        ExportError: an operation has no ONNX form. MissingHostError: onnx or onnxscript is not installed.
    """
    for module in ("onnx", "onnxscript"):
        require(module, "exporting to ONNX", "onnx")
    names: dict[str, Any] = {
        "input_names": [value.name for value in part.inputs],
        "output_names": [value.name for value in part.outputs],
    }
    try:
        with torch.no_grad(), _quiet():
            made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False, **names)
    except Exception as error:  # as above
        raise ExportError(f"{part.name} cannot be written as ONNX ({reason_of(error)}); report this model") from error
    assert made is not None
    _tidy(made.model.graph, part)
    size = sum(tensor.const_value.nbytes for tensor in made.model.graph.initializers.values() if tensor.const_value)
    made.save(str(path), external_data=size > LARGEST)


def _tidy(graph: Any, part: Part) -> None:
    """Give open dimensions the names of the part, and drop notes on what nodes come from."""
    names: dict[str, str] = {}
    for value, given in zip(part.inputs, graph.inputs, strict=True):
        names |= {str(old): new for old, new in zip(given.shape, value.shape, strict=True) if isinstance(new, str)}

    def renamed(dim: Any) -> Any:
        if isinstance(dim, int) or dim.value is None:  # unknown ones must not become equal ones
            return dim
        return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), str(dim))

    graph.metadata_props.clear()
    for node in graph:
        node.metadata_props.clear()
    for value in (*graph.inputs, *graph.initializers.values(), *(out for node in graph for out in node.outputs)):
        value.metadata_props.clear()
        if value.shape is not None:
            value.shape = type(value.shape)([renamed(dim) for dim in value.shape])


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell much, of themselves."""
    loggers = [logging.getLogger(name) for name in _NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
