"""Latency of ONNX files and of torch modules, with what they cost on paper."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.onnx.errors import UnsupportedOperatorError

from nas_core.errors import NasExtError
from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx import OnnxNetwork, read_onnx
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.shipped import shipped_model
from nas_core.latency.machine import describe_machine
from nas_core.latency.registry import load_latency_model
from nas_core.optional import require


@dataclass(frozen=True)
class NetworkPrediction:
    """What is predicted of one network."""

    name: str
    latency_ms: float
    spread_ms: float
    """Standard deviation, see :meth:`GraphLatencyModel.predict_with_spread`."""
    flops_g: float
    params_m: float
    access_m: float
    """Memory access in million elements."""
    unknown: Mapping[str, int]
    """Operators that the encoding does not know, and how many there are."""
    machine: str
    """Name of the device that the model's networks were measured on: the milliseconds are that one's."""
    out_of_range: str = ""
    """Sizes that are so far from those of the training's networks that the prediction cannot be a limit, in words."""


def opened(model: GraphLatencyModel | str | Path | None) -> GraphLatencyModel:
    """A model, the one in that file, or the shipped one: of onnxruntime, of this device if there is one.

    Raises:
        DataError: see :func:`nas_core.latency.load_latency_model`.
    """
    if model is None:
        return shipped_model(device_name=str(describe_machine("cpu", 1)["device_name"]))
    return model if isinstance(model, GraphLatencyModel) else load_latency_model(model, "graph")


def predict_networks(
    sources: Iterable[Any],
    model: GraphLatencyModel | str | Path | None = None,
    *,
    shapes: Mapping[str, Any] | None = None,
    batch: int | None = None,
) -> list[NetworkPrediction]:
    """Predict the latency of ONNX files, each read in the encoding that the model was trained with.

    Args:
        model: of ``nas-ext latency train``, or the path of its file; default: the shipped one.
        sources: as :func:`nas_core.graph.onnx.read_onnx` takes one; so are ``shapes`` and ``batch``, for all of them.

    Raises:
        GraphError: a network cannot be read. DataError: the model cannot be opened.
    """
    used = opened(model)
    return predict_read(
        [read_onnx(source, shapes=shapes, batch=batch, features=used.features, warn=False) for source in sources], used
    )


def predict_read(networks: Sequence[OnnxNetwork], model: GraphLatencyModel) -> list[NetworkPrediction]:
    """Predict the latency of networks that were read already, in the model's encoding."""
    predicted, spread = model.predict_with_spread(Graphs.of([network.graph for network in networks]))
    far = [model.out_of_range(network.graph) for network in networks]
    return [
        NetworkPrediction(
            n.name, float(ms), float(s), n.flops_g, n.params_m, n.access_m, n.unknown, model.machine, text
        )
        for n, ms, s, text in zip(networks, predicted, spread, far, strict=True)
    ]


def predict_module_latency(
    module: nn.Module,
    example_inputs: Tensor | tuple[Tensor, ...],
    model: GraphLatencyModel | str | Path | None = None,
) -> NetworkPrediction:
    """Predict the latency of a torch module, such as one of ``timm.create_model``, for inputs of those shapes.

    Args:
        model: of ``nas-ext latency train``, or the path of its file; default: the shipped one.

    Raises:
        GraphError: torch cannot export the module. MissingHostError: onnx is not installed.
    """
    used = opened(model)
    return predict_read([read_module(module, example_inputs, used.features)], used)[0]


def read_module(
    module: nn.Module, example_inputs: Tensor | tuple[Tensor, ...], features: str = "corrected"
) -> OnnxNetwork:
    """The graph of a module, exported in memory in evaluation mode; the module stays in the mode it is in.

    Raises:
        GraphError: torch cannot export it. MissingHostError: onnx is not installed.
    """
    name = type(module).__name__
    inputs = (example_inputs,) if isinstance(example_inputs, Tensor) else tuple(example_inputs)
    training = {part: part.training for part in module.modules()}
    try:
        content = _exported(module.eval(), inputs)
    except NasExtError:
        raise
    except Exception as error:  # whatever a module or torch's exporter raises
        reason = next(iter(str(error).strip().splitlines()), "")
        raise GraphError(
            f"torch cannot export {name} ({type(error).__name__}: {reason[:200]}); check that it runs with these inputs"
        ) from error
    finally:
        for part, mode in training.items():
            part.training = mode
    return replace(read_onnx(content, features=features, warn=False), name=name)


def _exported(module: nn.Module, inputs: tuple[Tensor, ...]) -> bytes:
    """By the exporter that made the data sets; where it lacks an operator, by torch's newer one, which takes thrice as
    long."""
    from nas_core.latency.by_graph.dataset.export import exported

    try:
        return exported(module, inputs)
    except UnsupportedOperatorError:
        require("onnxscript", "exporting networks", "onnx")
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            made: Any = torch.onnx.export(module, inputs, dynamo=True, verbose=False)
        content: bytes = made.model_proto.SerializeToString()
        return content
