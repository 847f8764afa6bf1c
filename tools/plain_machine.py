"""Check the Python packages and the device of a machine without nas-ext's environment."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Mapping

OPTIONAL_MODULES: Mapping[str, str] = {
    "timm": "image models and their training",
    "torchvision": "image models and their training",
    "onnxruntime": "exported networks and their latency",
    "onnx": "exported networks and their latency",
    "onnxscript": "exported networks",
    "triton": "torch.compile on a GPU",
    "fairseq": "training through fairseq",
    "lightgbm": "boosted trees of predictors and of RankNAS",
    "typer": "the command nas-ext",
    "plotly": "reports",
}
"""Modules -> use."""


def missing_modules() -> dict[str, str]:
    """Return the missing modules of :data:`OPTIONAL_MODULES` and their use."""
    return {name: use for name, use in OPTIONAL_MODULES.items() if importlib.util.find_spec(name) is None}


def device_problem(device: str) -> str | None:
    """Return why a device cannot be used and what to do, or None."""
    advice = "name one that has it: make ... CUDA_PYTHON=/path/to/python3"
    if sys.version_info < (3, 11):  # noqa: UP036  it may be any python3
        return f"{sys.executable} is Python {platform.python_version()}; expected 3.11 or newer: {advice}"
    for name in ("torch", "numpy", "scipy", "yaml", "tqdm", "safetensors"):
        if importlib.util.find_spec(name) is None:
            return f"{sys.executable} has no module {name}; install it, or {advice}"
    import torch

    from nas_core.device import usable_device
    from nas_core.errors import ConfigError

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        return (
            f"torch {torch.__version__} of {sys.executable} finds no CUDA device; {advice}, or try the same on the CPU"
            " with ARGS='--device cpu'"
        )
    try:
        usable_device(device)
    except ConfigError as error:
        return str(error)
    return None


def device_lines(device: str) -> list[str]:
    """Return lines about versions, devices and missing modules."""
    import torch

    cuda = torch.device(device).type == "cuda"
    count = torch.cuda.device_count() if cuda else 0
    lines = [f"Python {platform.python_version()}, torch {torch.__version__}"]
    lines += [f"cuda:{index} {torch.cuda.get_device_name(index)}" for index in range(count)]
    return [*lines, *(f"missing: {name} ({use})" for name, use in missing_modules().items())]
