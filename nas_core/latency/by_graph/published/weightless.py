"""Networks whose weights take no memory, and their ONNX files: for graphs of networks of any size.

Parameters on torch's meta device would take none either, but what a network computes from its positions and shapes are
ordinary tensors, and no operation takes both.
"""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset.export import ABSENT, OPSET, input_names, without_weights
from nas_core.optional import require

_VALUE, _STEP = 1e-2, 1e-6
"""The number that all elements of the first parameter have, and by what the next one's differs: the exporter would take
parameters that are equal for one."""
_BATCH, _ANY, _OUTPUT = "batch", "any", "output"
"""Name of the open dimension and of what a file tells of it, that it may have any size; name of the first output."""


@contextmanager
def without_storage() -> Iterator[None]:
    """Give the parameters of all modules that are made in the block one number for all their elements.

    They have their shapes and compute as others do. Writing to one of them in the block, as initialisation does, has no
    effect.
    """
    register, numbers = nn.Module.register_parameter, itertools.count()

    def registered(module: nn.Module, name: str, param: nn.Parameter | None) -> None:
        light = param is not None and param.is_floating_point() and not isinstance(param, nn.UninitializedParameter)
        register(module, name, _one_number(param, next(numbers)) if param is not None and light else param)

    nn.Module.register_parameter = registered  # type: ignore[method-assign, assignment]
    try:
        with _Unwritten():
            yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def _one_number(param: nn.Parameter, index: int) -> nn.Parameter:
    value = torch.full((), _VALUE + _STEP * index, dtype=param.dtype, device=param.device)
    return nn.Parameter(value.expand(param.shape), requires_grad=False)


class _Unwritten(TorchFunctionMode):
    """Leaves out what would be written to tensors whose elements share memory."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, given = getattr(func, "__name__", ""), dict(kwargs or {})
        target = args[0] if args else given.get("tensor")
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if writes and isinstance(target, Tensor) and _shares_memory(target):
            return target
        return func(*args, **given)


def _shares_memory(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided:
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def exported_without_weights(
    network: nn.Module, inputs: Sequence[Tensor], batch: int = 1, folding: bool = True, any_batch: bool = True
) -> bytes:
    """The ONNX file of a network for so many inputs at a time, from one pass of one; its weights are left out.

    The same nodes, shapes and costs as ``without_weights(exported(network, inputs))`` of the data set, which would hold
    all weights several times.

    Args:
        inputs: of batch 1, each.
        batch: what the first dimension of each input is in the file.
        folding: compute what follows from weights alone, and fuse normalisations into convolutions. Where a shape
            follows from that of a weight, it is lost with the weights' values.
        any_batch: trace the network for any batch, which not all can be, so that :func:`of_batch` can change it;
            otherwise ``batch`` must be 1.

    Raises:
        ConfigError: ``batch`` is larger, but not ``any_batch``. MissingHostError: onnx is not installed. Others:
        whatever torch raises where it cannot export.
    """
    if batch > 1 and not any_batch:
        raise ConfigError(f"batch {batch} without any_batch: one pass of one is traced; leave any_batch on")
    onnx = require("onnx", "exporting networks", "onnx")
    names = input_names(len(inputs))
    model = onnx.ModelProto.FromString(without_weights(_traced(network, inputs, names, folding, any_batch)))
    _weights_elsewhere(model.graph, set(names), onnx)
    if any_batch:
        model.metadata_props.add(key=_BATCH, value=_ANY)
        _without_following(model.graph)
        _set_batch(model.graph, batch)
    made: bytes = model.SerializeToString()
    return made


def of_batch(content: bytes, batch: int) -> bytes | None:
    """The file that :func:`exported_without_weights` made, for another batch; None where it is of one batch only.

    Raises:
        MissingHostError: onnx is not installed. DecodeError (protobuf's): it is no ONNX file.
    """
    model = require("onnx", "changing the batch of networks", "onnx").ModelProto.FromString(content)
    if (_BATCH, _ANY) not in [(entry.key, entry.value) for entry in model.metadata_props]:
        return None
    _set_batch(model.graph, batch)
    changed: bytes = model.SerializeToString()
    return changed


def _traced(network: nn.Module, inputs: Sequence[Tensor], names: list[str], folding: bool, any_batch: bool) -> bytes:
    """What torch exports; its inputs' first dimension has a name instead of a size if it shall be of any batch."""
    file = io.BytesIO()
    open_axes = {"dynamic_axes": {name: {0: _BATCH} for name in (*names, _OUTPUT)}} if any_batch else {}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # that the exporter is the older one, and that sizes become constants
        torch.onnx.export(
            _OnlyInputs(network),
            tuple(inputs),
            file,  # type: ignore[arg-type]  # the signature does not know files
            dynamo=False,
            export_params=False,
            do_constant_folding=folding,
            opset_version=OPSET,
            input_names=names,
            output_names=[_OUTPUT],
            **open_axes,  # type: ignore[arg-type]
        )
    return file.getvalue()


class _OnlyInputs(nn.Module):
    """Keeps other arguments from the exporter, which makes tensors of their defaults, of ``causal=False`` too."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> Any:
        return self.network(*inputs)


def _weights_elsewhere(graph: Any, inputs: set[str], onnx: Any) -> None:
    """Make what the exporter names as further inputs weights that are in another file."""
    kept = [value for value in graph.input if value.name in inputs]
    for value in graph.input:
        if value.name not in inputs:
            kind = value.type.tensor_type
            sizes = [dimension.dim_value for dimension in kind.shape.dim]
            tensor = graph.initializer.add(name=value.name, data_type=kind.elem_type, dims=sizes)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=ABSENT)
    del graph.input[:]
    graph.input.extend(kept)


def _without_following(graph: Any) -> None:
    """Leave out the shapes of what follows from the inputs; who reads the file infers them anew."""
    following = {value.name for value in graph.input}
    for node in graph.node:
        if not following.isdisjoint(node.input):
            following.update(node.output)
    kept = [value for value in graph.value_info if value.name not in following]
    del graph.value_info[:]
    graph.value_info.extend(kept)


def _set_batch(graph: Any, batch: int) -> None:
    """Give the first dimension of the inputs a size, and what equals it in the outputs."""
    for value in (*graph.input, *(value for value in graph.output if value.name == _OUTPUT)):
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    for value in graph.output:
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param == _BATCH:
                dimension.dim_value = batch
