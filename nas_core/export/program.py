"""Tracing, export and comparison with PyTorch of one part of a model."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from nas_core.errors import NasExtError
from nas_core.export.parts import ExportError, ExportModule, reason_of
from nas_core.optional import require

OPSET = 20
LARGEST = 2**31 - 2**24
"""Largest size of weights in bytes inside an ONNX file."""
TOLERANCE = 1e-4
"""Largest allowed difference from PyTorch, divided by max(1, largest absolute output)."""
SIZES = (0, 4, 9)
"""Sizes of open dimensions in comparisons with PyTorch. 0 means the smallest allowed."""
_TRACED_SIZE = 5
_NOISY = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")

Run = Callable[[tuple[Tensor, ...]], Sequence[Any]]


def trace(part: ExportModule) -> ExportedProgram:
    dims = {dim.name: Dim(dim.name, max=dim.largest) for dim in part.dims}
    shapes = [{axis: dims[dim] for axis, dim in enumerate(v.shape) if isinstance(dim, str)} for v in part.inputs]
    examples = part.examples(_TRACED_SIZE)
    named = part.module.forward.__code__.co_argcount - 1  # further inputs are in *states
    packed = (*shapes[:named], tuple(shapes[named:])) if len(shapes) > named else tuple(shapes)
    try:
        with torch.no_grad(), _quiet():
            program = torch.export.export(part.module, examples, dynamic_shapes=packed, strict=False)
    except NasExtError:
        raise
    except Exception as error:  # torch raises many kinds
        raise ExportError(
            f"torch.export cannot trace {part.name} ({reason_of(error)}); report this as a bug"
        ) from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # contains local paths
    return program


def write_onnx(program: ExportedProgram, part: ExportModule, path: Path) -> None:
    """Write an ONNX file. Weights that are too large for it go to ``<path>.data``."""
    names: dict[str, Any] = {"input_names": part.input_names, "output_names": part.output_names}
    try:
        with torch.no_grad(), _quiet():
            model = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False, **names)
    except Exception as error:
        raise ExportError(
            f"{part.name} cannot be written as ONNX ({reason_of(error)}); report this as a bug"
        ) from error
    assert model is not None
    _clean_graph(model.model.graph, part)
    size = sum(tensor.const_value.nbytes for tensor in model.model.graph.initializers.values() if tensor.const_value)
    model.save(str(path), external_data=size > LARGEST)


def _clean_graph(graph: Any, part: ExportModule) -> None:
    names: dict[str, str] = {}
    for value, tensor in zip(part.inputs, graph.inputs, strict=True):
        names |= {str(old): new for old, new in zip(tensor.shape, value.shape, strict=True) if isinstance(new, str)}

    def rename(dim: Any) -> Any:
        if isinstance(dim, int) or dim.value is None:  # unknown ones must not become equal ones
            return dim
        return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), str(dim))

    graph.metadata_props.clear()
    for node in graph:
        node.metadata_props.clear()
    for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
        value.metadata_props.clear()
        if value.shape is not None:
            value.shape = type(value.shape)([rename(dim) for dim in value.shape])


@contextmanager
def _quiet() -> Iterator[None]:
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


def check_onnx(path: Path, part: ExportModule) -> float:
    """Compare an ONNX file with PyTorch on random inputs and return the largest relative difference."""
    onnx = require("onnx", "checking an ONNX file", "onnx")
    runtime = require("onnxruntime", "checking an ONNX file", "onnx")
    try:
        onnx.checker.check_model(str(path))
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnx and onnxruntime have errors of their own for each stage
        raise ExportError(f"{path.name} is not valid ONNX ({reason_of(error)}); report this as a bug") from error

    def run(inputs: tuple[Tensor, ...]) -> Sequence[Any]:
        return list(
            session.run(part.output_names, {name: x.numpy() for name, x in zip(part.input_names, inputs, strict=True)})
        )

    return _max_difference(path, part, run)


def check_program(path: Path, part: ExportModule) -> float:
    """Compare a ``torch.export`` file with PyTorch, like :func:`check_onnx`."""
    module = torch.export.load(path).module()

    def run(inputs: tuple[Tensor, ...]) -> Sequence[Any]:
        with torch.no_grad():
            return [x.numpy() for x in module(*inputs)]

    return _max_difference(path, part, run)


def _max_difference(path: Path, part: ExportModule, run: Run) -> float:
    largest = 0.0
    for seed, size in enumerate(SIZES):
        inputs = part.examples(size, seed)
        with torch.no_grad():
            expected = part.module(*inputs)
        try:
            outputs = run(inputs)
        except Exception as error:
            shapes = [tuple(x.shape) for x in inputs]
            raise ExportError(
                f"{path.name} fails on inputs of shapes {shapes} ({reason_of(error)}); report this as a bug"
            ) from error
        for value, torch_output, file_output in zip(part.outputs, expected, outputs, strict=True):
            difference = _difference(torch_output.numpy(), np.asarray(file_output))
            if not difference <= TOLERANCE:
                raise ExportError(
                    f"output {value.name} of {path.name} has a relative difference of {difference:.1e} from PyTorch for"
                    f" inputs of shapes {[tuple(x.shape) for x in inputs][:4]}, expected at most {TOLERANCE:g};"
                    " nothing was written"
                )
            largest = max(largest, difference)
    return largest


def _difference(expected: np.ndarray[Any, Any], actual: np.ndarray[Any, Any]) -> float:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    if not expected.size:
        return 0.0
    if expected.dtype == bool:
        return 0.0 if np.array_equal(expected, actual) else float("inf")
    return float(np.abs(expected - actual).max() / max(1.0, float(np.abs(expected).max())))
