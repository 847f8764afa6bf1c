"""Whether a written file computes what torch does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.export.parts import ExportError, Part, reason_of
from nas_core.optional import require

TOLERANCE = 1e-4
"""Largest difference, relative to the largest value of a tensor if that is above 1."""
SIZES = (0, 4, 9)
"""Sizes that open dimensions are tried with; 0: the smallest that are allowed."""

Run = Callable[[tuple[Tensor, ...]], Sequence[Any]]


def check_onnx(path: Path, part: Part) -> float:
    """Largest difference to torch on random inputs of several sizes, run by onnxruntime, after ``onnx.checker``.

    Raises:
        ExportError: the file is not valid ONNX, does not run, or computes something else.
        MissingHostError: onnx or onnxruntime is not installed.
    """
    onnx = require("onnx", "checking an ONNX file", "onnx")
    runtime = require("onnxruntime", "checking an ONNX file", "onnx")
    names = [value.name for value in part.inputs], [value.name for value in part.outputs]
    try:
        onnx.checker.check_model(str(path))
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnx and onnxruntime have errors of their own for each stage
        raise ExportError(f"{path.name} is not valid ONNX ({reason_of(error)}); report this model") from error
    found = [value.name for value in session.get_inputs()], [value.name for value in session.get_outputs()]
    if found != names:
        raise ExportError(f"{path.name} reads and gives {found}; expected {names}; report this model")

    def run(inputs: tuple[Tensor, ...]) -> Sequence[Any]:
        return list(session.run(None, {name: x.numpy() for name, x in zip(names[0], inputs, strict=True)}))

    return _largest(path, part, run)


def check_program(path: Path, part: Part) -> float:
    """The same for a ``torch.export`` program, loaded from its file."""
    module = torch.export.load(path).module()

    def run(inputs: tuple[Tensor, ...]) -> Sequence[Any]:
        with torch.no_grad():
            return [x.numpy() for x in module(*inputs)]

    return _largest(path, part, run)


def _largest(path: Path, part: Part, run: Run) -> float:
    largest = 0.0
    for seed, size in enumerate(SIZES):
        inputs = part.examples(size, seed)
        with torch.no_grad():
            wanted = part.module(*inputs)
        try:
            got = run(inputs)
        except Exception as error:  # as above
            shapes = [tuple(x.shape) for x in inputs]
            raise ExportError(
                f"{path.name} does not run on {shapes} ({reason_of(error)}); report this model"
            ) from error
        for value, ours, theirs in zip(part.outputs, wanted, got, strict=True):
            difference = _difference(ours.numpy(), np.asarray(theirs))
            if not difference <= TOLERANCE:
                raise ExportError(
                    f"{path.name} gives {value.name} {difference:.1e} from torch's, relative to its scale, on inputs"
                    f" {[tuple(x.shape) for x in inputs][:4]}; expected at most {TOLERANCE:g}; nothing was written"
                )
            largest = max(largest, difference)
    return largest


def _difference(wanted: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> float:
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return float("inf")
    if not wanted.size:
        return 0.0
    if wanted.dtype == bool:
        return 0.0 if np.array_equal(wanted, got) else float("inf")
    return float(np.abs(wanted - got).max() / max(1.0, float(np.abs(wanted).max())))
