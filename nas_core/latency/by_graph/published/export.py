"""ONNX export of published networks of any size, with weights that take no memory."""

# torch's meta device is no alternative: ordinary tensors, such as positions, cannot be combined with meta parameters.

from __future__ import annotations

import itertools
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nas_core.errors import NasExtError
from nas_core.files.writing import write_atomic
from nas_core.graph import GraphError
from nas_core.graph.onnx.reader import OnnxNetwork, read_onnx
from nas_core.latency.by_graph.dataset.export import ABSENT, exported, input_names, without_weights
from nas_core.optional import require

ABSENT_FAMILY = "absent"
_SAME_PARAMS, _ROUNDED_M = 0.01, 0.011  # tolerances for published parameter counts: relative, and in millions
# pairs (any batch, constant folding) of options, in the order of the attempts
_EXPORT_OPTIONS = ((True, True), (True, False), (False, True), (False, False))
# Folding fails if a shape depends on a weight's shape, as with weights that are standardised in each pass.
_KILL_FACTOR = 3  # multiple of the time limit, in CPU time, after which the system ends a process that hangs in C code
_NO_MEMORY = ("can't allocate memory", "not enough memory", "bad_alloc", "Cannot allocate memory")
# value of the first parameter, and increment per parameter; the exporter would merge equal parameters
_VALUE, _STEP = 1e-2, 1e-6
_BATCH, _OUTPUT = "batch", "output"


class NamedNetwork(NamedTuple):
    """Published network, with the function that builds it."""

    family: str
    """Python module of its code."""
    make: Callable[[float | None], tuple[nn.Module, tuple[Tensor, ...]]]
    """Function that builds the network in evaluation mode, and inputs with batch size 1. Its argument, the published
    million parameters, selects a variant of the network."""


def exporting(
    build: Callable[[str, int], NamedNetwork | None],
    folder: str,
    max_seconds: float,
    max_memory_gb: float | None,
    max_nodes: int,
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that exports a published network to an ONNX file in a folder.

    Its argument has ``name, model, img_size, batch_size`` and optionally ``params_m``. Its result has ``family`` and
    either ``error`` or the costs in a row of :class:`NetworkSet`.

    Args:
        build: function that returns the network of a model name and image size, None for an unknown name.
        max_memory_gb: memory limit of this process; None: no limit.
    """
    if max_memory_gb is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = int(max_memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))

    def export(item: Mapping[str, Any]) -> dict[str, Any]:
        network = build(item["model"], item["img_size"])
        if network is None:
            return {"family": ABSENT_FAMILY, "error": f"model {item['model']!r} does not exist"}
        try:
            with _time_limit(max_seconds):
                return {"family": network.family, **_costs(network, item, Path(folder), max_nodes)}
        except Exception as error:  # a network and the exporter may raise anything
            return {"family": network.family, "error": _reason(error, max_memory_gb)}

    return export


def _costs(network: NamedNetwork, item: Mapping[str, Any], folder: Path, max_nodes: int) -> dict[str, Any]:
    start_time = time.perf_counter()
    content, graph_info = _exported(network, item)
    if len(graph_info.graph) > max_nodes:
        raise NasExtError(f"the graph has {len(graph_info.graph)} nodes, more than {max_nodes}")
    write_atomic(folder / f"{item['name']}.onnx", content)
    return {
        "seconds": time.perf_counter() - start_time,
        "nodes": len(graph_info.graph),
        "flops_g": graph_info.flops_g,
        "params_m": graph_info.params_m,
        "access_m": graph_info.access_m,
        "unknown": dict(graph_info.unknown),
    }


def _exported(named: NamedNetwork, item: Mapping[str, Any]) -> tuple[bytes, OnnxNetwork]:
    published, batch = item.get("params_m"), item["batch_size"]
    with without_storage():
        network, inputs = named.make(published)
    params_m = sum(param.numel() for param in network.parameters()) / 1e6
    if published is not None and abs(params_m - published) > max(_SAME_PARAMS * published, _ROUNDED_M):
        raise NasExtError(
            f"the network has {params_m:.2f} M parameters, but {published:g} M were published; it is another network"
        )
    failures: list[Exception] = []
    for any_batch, folding in _EXPORT_OPTIONS if batch == 1 else _EXPORT_OPTIONS[:2]:
        try:
            with _quiet():
                content = exported_without_weights(network, inputs, batch, folding, any_batch)
                return content, read_onnx(content, warn=False)
        except (GraphError, torch.onnx.errors.SymbolicValueError) as error:
            failures.append(error)
    raise failures[-1]


def _reason(error: Exception, max_memory_gb: float | None) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
        limit = "there is" if max_memory_gb is None else f"{max_memory_gb:g} GB"
        return f"the export takes more memory than {limit}"
    return text[:300] if isinstance(error, NasExtError) else f"{type(error).__name__}: {text[:300]}"


@contextmanager
def _quiet() -> Iterator[None]:
    stdout, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(null)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise NasExtError(f"the export takes longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_PROF, _KILL_FACTOR * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def without_storage() -> Iterator[None]:
    """Create parameters inside the block that store one number for all elements; writing to them has no effect."""
    register, numbers = nn.Module.register_parameter, itertools.count()

    def registered(module: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and param.is_floating_point() and not isinstance(param, nn.UninitializedParameter):
            value = torch.full((), _VALUE + _STEP * next(numbers), dtype=param.dtype, device=param.device)
            param = nn.Parameter(value.expand(param.shape), requires_grad=False)
        register(module, name, param)

    nn.Module.register_parameter = registered  # type: ignore[method-assign, assignment]
    try:
        with _IgnoreWrites():
            yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


class _IgnoreWrites(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, named = getattr(func, "__name__", ""), dict(kwargs or {})
        target = args[0] if args else named.get("tensor")
        writes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if writes and isinstance(target, Tensor) and _shares_memory(target):
            return target
        return func(*args, **named)


def _shares_memory(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided:
        return False
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def exported_without_weights(
    network: nn.Module, inputs: Sequence[Tensor], batch: int = 1, folding: bool = True, any_batch: bool = True
) -> bytes:
    """Export a network to ONNX without its weights. The graph is that of :func:`exported`.

    Args:
        batch: batch size in the file.
        folding: fold constants, and fuse normalisations into convolutions.
        any_batch: trace with a dynamic batch size, which some networks do not support; False: ``batch`` must be 1.
    """
    onnx = require("onnx", "exporting networks", "onnx")
    names = input_names(len(inputs))
    open_axes = {"dynamic_axes": {name: {0: _BATCH} for name in (*names, _OUTPUT)}} if any_batch else {}
    options = {"export_params": False, "do_constant_folding": folding, **open_axes}
    model = onnx.ModelProto.FromString(without_weights(exported(_OnlyInputs(network), tuple(inputs), **options)))
    _detach_weights(model.graph, set(names), onnx)
    if any_batch:
        _set_batch(model.graph, batch)
    return bytes(model.SerializeToString())


class _OnlyInputs(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> Any:
        return self.network(*inputs)


def _detach_weights(graph: Any, inputs: set[str], onnx: Any) -> None:
    graph_inputs = [value for value in graph.input if value.name in inputs]
    for value in graph.input:
        if value.name not in inputs:
            kind = value.type.tensor_type
            sizes = [dimension.dim_value for dimension in kind.shape.dim]
            tensor = graph.initializer.add(name=value.name, data_type=kind.elem_type, dims=sizes)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=ABSENT)
    del graph.input[:]
    graph.input.extend(graph_inputs)


def _set_batch(graph: Any, batch: int) -> None:
    """Set the batch size of inputs and outputs, and remove the stored shapes that depend on it."""
    dependent = {value.name for value in graph.input}
    for node in graph.node:
        if not dependent.isdisjoint(node.input):
            dependent.update(node.output)
    independent = [value for value in graph.value_info if value.name not in dependent]
    del graph.value_info[:]
    graph.value_info.extend(independent)
    for value in (*graph.input, *graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param == _BATCH:
                dimension.dim_value = batch
