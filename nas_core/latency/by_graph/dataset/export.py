"""Networks with random weights that compute with ordinary numbers, and their ONNX files with and without weights."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # noqa: PLC2701

from nas_core.optional import require

OPSET = 17
KEPT = 1024
"""Whole numbers of a tensor that stays in the file, which may be a shape that an operator needs."""
KEPT_FLOATS = 16
"""Elements of a constant of real numbers that is kept: bounds and scales."""
ABSENT = "weights-left-out.bin"
"""The file that holds the weights according to the ONNX file; it does not exist."""
_VALUES = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "external_data")


@torch.no_grad()
def calibrate(network: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Set the statistics of every batch norm to those of its own input in one pass; the outputs of that pass.

    Random weights without a training let activations explode or shrink to denormal numbers, with which a processor is
    a hundred times slower.
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
    """What a network gave, be it one tensor or several."""
    return (result,) if isinstance(result, Tensor) else tuple(result)


def _take_statistics(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
    if norm.running_mean is None or norm.running_var is None:
        return
    (x,) = inputs
    others = [dimension for dimension in range(x.ndim) if dimension != 1]
    norm.running_mean.copy_(x.mean(others))
    variance = x.var(others, unbiased=False)
    # One pixel has no variance; the channel's square then keeps the output of the order of one.
    norm.running_var.copy_(variance + x.square().mean(others) * 1e-2)


def input_names(count: int) -> list[str]:
    """Name the inputs of an exported file, in the order of the network's."""
    return [f"input{index}" for index in range(count)]


def exported(network: nn.Module, inputs: tuple[Tensor, ...]) -> bytes:
    """The ONNX file of a network, by tracing: a third of the time of torch's newer exporter. All outputs are in it; the
    exporter names those after the first.

    Raises:
        MissingHostError: onnx is not installed. Others: whatever torch raises where it cannot export.
    """
    require("onnx", "exporting networks", "onnx")
    file: Any = io.BytesIO()  # which the signature of torch.onnx.export does not know
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
        )
    content: bytes = file.getvalue()
    return content


def without_weights(content: bytes) -> bytes:
    """The same model with its large tensors kept in another file, which nobody has: nodes and shapes stay."""
    onnx = require("onnx", "exporting networks", "onnx")
    model = onnx.ModelProto.FromString(content)
    floats = {getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")}
    for tensor in _tensors(model.graph, onnx):
        if math.prod(tensor.dims) > (KEPT_FLOATS if tensor.data_type in floats else KEPT):
            for field in _VALUES:
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=ABSENT)
    light: bytes = model.SerializeToString()
    return light


def _tensors(graph: Any, onnx: Any) -> list[Any]:
    constants = (
        attribute.t
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.type == onnx.AttributeProto.TENSOR
    )
    return [*graph.initializer, *constants]
