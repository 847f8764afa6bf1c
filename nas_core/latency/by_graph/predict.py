"""Latency prediction for ONNX files and torch modules."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.onnx.errors import UnsupportedOperatorError

from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx.reader import OnnxNetwork, read_onnx
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.dataset.export import exported
from nas_core.latency.machine import is_here
from nas_core.latency.registry import load_latency_model
from nas_core.machine import cpu_name
from nas_core.optional import require

FOLDER = Path(__file__).parent / "shipped"
_log = logging.getLogger(__name__)
_warned: set[str] = set()


@dataclass(frozen=True)
class NetworkPrediction:
    """Predicted latency and costs of a network."""

    name: str
    latency_ms: float
    std_ms: float
    """Standard deviation of the latency."""
    flops_g: float
    params_m: float
    access_m: float
    """Memory access in million elements."""
    unknown: Mapping[str, int]
    """Counts of operators that the encoding of graphs does not support."""
    machine: str
    """Device on which the training networks were measured."""
    out_of_range: str = ""
    """Sizes so far outside the training range that the prediction is unreliable."""


def shipped_model(runtime: str = "onnxruntime", device_name: str | None = None) -> GraphLatencyModel:
    """Return the shipped latency model for a runtime and device; if there is none, the first for the runtime."""
    models = [model for model in _shipped() if model.info.get("runtime") == runtime]
    if not models:
        raise ConfigError(f"no model is shipped for {runtime}; give --model FILE, trained by 'nas-ext latency train'")
    return next((model for model in models if device_of(model) == device_name), models[0])


def shipped_for(device_name: str) -> GraphLatencyModel:
    """Return a shipped latency model for a device, for any runtime."""
    models = {device_of(model) or "": model for model in reversed(_shipped())}
    if device_name not in models:
        raise unknown_choice("device of a shipped model", device_name, sorted(models))
    return models[device_name]


def device_of(model: GraphLatencyModel) -> str | None:
    machine: Any = model.info.get("machine")
    return str(machine.get("device_name")) if isinstance(machine, dict) else None


def _shipped() -> list[GraphLatencyModel]:
    return [load_latency_model(path, "graph") for path in sorted(FOLDER.glob("*.safetensors"))]


def opened(model: GraphLatencyModel | str | Path | None) -> GraphLatencyModel:
    """Return a latency model, or load it from a file; None: the shipped model for onnxruntime."""
    if model is None:
        return shipped_model(device_name=cpu_name())
    return model if isinstance(model, GraphLatencyModel) else load_latency_model(model, "graph")


def predict_networks(
    sources: Iterable[Any],
    model: GraphLatencyModel | str | Path | None = None,
    *,
    shapes: Mapping[str, Any] | None = None,
    batch: int | None = None,
) -> list[NetworkPrediction]:
    """Predict the latency of ONNX files.

    Args:
        sources: ONNX models, read by :func:`nas_core.graph.onnx.reader.read_onnx` with ``shapes`` and ``batch``.
        model: latency model or its file; None: the shipped model.
    """
    model = opened(model)
    networks = [read_onnx(source, shapes=shapes, batch=batch, warn=False) for source in sources]
    return predict_read(networks, model)


def predict_read(networks: Sequence[OnnxNetwork], model: GraphLatencyModel) -> list[NetworkPrediction]:
    device = device_of(model)
    if device and device not in _warned and not is_here(device):
        _warned.add(device)
        _log.warning(
            "predictions are for %s, but this machine is %s; adapt the model by 'nas-ext latency adapt'", device,
            cpu_name(),
        )  # fmt: skip
    predicted, deviation = model.predict_with_std(Graphs.of([network.graph for network in networks]))
    out_of_range = [model.out_of_range(network.graph) for network in networks]
    return [
        NetworkPrediction(
            n.name, float(ms), float(s), n.flops_g, n.params_m, n.access_m, n.unknown, model.machine, text
        )
        for n, ms, s, text in zip(networks, predicted, deviation, out_of_range, strict=True)
    ]


def predict_module_latency(
    module: nn.Module,
    example_inputs: Tensor | tuple[Tensor, ...],
    model: GraphLatencyModel | str | Path | None = None,
) -> NetworkPrediction:
    """Predict the latency of a torch module, such as one of ``timm.create_model``.

    Args:
        model: latency model or its file; None: the shipped model.

    Raises:
        GraphError: torch cannot export the module.
    """
    model = opened(model)
    return predict_read([read_module(module, example_inputs)], model)[0]


def read_module(module: nn.Module, example_inputs: Tensor | tuple[Tensor, ...]) -> OnnxNetwork:
    """Export a module in evaluation mode and read its graph."""
    name = type(module).__name__
    inputs = (example_inputs,) if isinstance(example_inputs, Tensor) else tuple(example_inputs)
    training = {submodule: submodule.training for submodule in module.modules()}
    try:
        content = _exported(module.eval(), inputs)
    except NasExtError:
        raise
    except Exception as error:  # a module and torch's exporter may raise anything
        reason = next(iter(str(error).strip().splitlines()), "")
        raise GraphError(
            f"torch cannot export {name} ({type(error).__name__}: {reason[:200]}); check that it runs with these inputs"
        ) from error
    finally:
        for submodule, mode in training.items():
            submodule.training = mode
    return replace(read_onnx(content, warn=False), name=name)


def _exported(module: nn.Module, inputs: tuple[Tensor, ...]) -> bytes:
    try:
        return exported(module, inputs)
    except UnsupportedOperatorError:
        require("onnxscript", "exporting networks", "onnx")
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program: Any = torch.onnx.export(module, inputs, dynamo=True, verbose=False)
        return bytes(program.model_proto.SerializeToString())
