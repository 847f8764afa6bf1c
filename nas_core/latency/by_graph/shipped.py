"""Latency models that come with this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, unknown_choice
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.registry import load_latency_model

FOLDER = Path(__file__).parent / "shipped"


def shipped_model(runtime: str = "onnxruntime", device_name: str | None = None) -> GraphLatencyModel:
    """The shipped model for that runtime: of this device if there is one, else the first by name.

    Raises:
        ConfigError: none is shipped for that runtime.
    """
    fitting = [model for model in _all() if model.info.get("runtime") == runtime]
    if not fitting:
        raise ConfigError(f"no model is shipped for {runtime}; give --model with one of 'nas-ext latency train'")
    return next((model for model in fitting if device_of(model) == device_name), fitting[0])


def shipped_for(device_name: str) -> GraphLatencyModel:
    """The first shipped model by name for that device, whatever its runtime.

    Raises:
        UnknownChoiceError: none is shipped for that device.
    """
    models = {device_of(model) or "": model for model in reversed(_all())}
    if device_name not in models:
        raise unknown_choice("device of a shipped model", device_name, sorted(models))
    return models[device_name]


def _all() -> list[GraphLatencyModel]:
    return [load_latency_model(path, "graph") for path in sorted(FOLDER.glob("*.safetensors"))]


def device_of(model: GraphLatencyModel) -> str | None:
    """The name of the device that its networks were measured on, where it is known."""
    machine: Any = model.info.get("machine")
    return str(machine.get("device_name")) if isinstance(machine, dict) else None
