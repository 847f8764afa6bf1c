"""ONNX export of networks with random weights, and removal of the weights."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # noqa: PLC2701

from nas_core.graph.onnx.model import MAX_STORED, clear_values, stored_tensors
from nas_core.optional import require

OPSET = 17
MAX_FLOATS = 16  # maximum number of elements of a floating-point constant that stays in the file
ABSENT = "weights-left-out.bin"
"""External file of the removed weights in the ONNX file; it does not exist."""


@torch.no_grad()
def calibrate(network: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Set the statistics of every batch norm from one pass, and return the outputs of this pass.

    Otherwise, activations with random weights would explode or vanish.
    """
    hooks = [
        module.register_forward_pre_hook(_take_statistics)
        for module in network.modules()
        if isinstance(module, _BatchNorm)
    ]
    try:
        return outputs_of(network(*inputs))
    finally:
        for hook in hooks:
            hook.remove()


def outputs_of(result: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)


def _take_statistics(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
    if norm.running_mean is None or norm.running_var is None:
        return
    (x,) = inputs
    dimensions = [dimension for dimension in range(x.ndim) if dimension != 1]
    norm.running_mean.copy_(x.mean(dimensions))
    # One pixel has no variance; the channel's square then keeps the output of the order of one.
    norm.running_var.copy_(x.var(dimensions, unbiased=False) + x.square().mean(dimensions) * 1e-2)


def input_names(count: int) -> list[str]:
    return [f"input{index}" for index in range(count)]


def exported(network: nn.Module, inputs: tuple[Tensor, ...], **options: Any) -> bytes:
    """Export a network to ONNX by tracing."""  # three times as fast as torch's newer exporter
    require("onnx", "exporting networks", "onnx")
    file: Any = io.BytesIO()  # unknown to the signature of torch.onnx.export
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # that the exporter is the older one, and that sizes become constants
        torch.onnx.export(
            network,
            inputs,
            file,
            dynamo=False,
            opset_version=OPSET,
            input_names=input_names(len(inputs)),
            output_names=["output"],
            **options,
        )
    return bytes(file.getvalue())


def without_weights(content: bytes) -> bytes:
    """Replace large tensors of an ONNX model by references to an external file that does not exist."""
    onnx = require("onnx", "exporting networks", "onnx")
    model = onnx.ModelProto.FromString(content)
    floats = {getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")}
    for tensor in stored_tensors(model.graph):
        if math.prod(tensor.dims) > (MAX_FLOATS if tensor.data_type in floats else MAX_STORED):
            clear_values(tensor)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=ABSENT)
    return bytes(model.SerializeToString())
