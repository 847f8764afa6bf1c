"""Which options of fairseq's transformers have no elastic form, by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError

__all__ = ["ACTIVATIONS", "activation", "off", "refuse"]

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "tanh": "tanh",
}
"""fairseq's ``--activation-fn`` -> :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""


def off(config: Any, options: Iterable[str]) -> dict[str, str]:
    """Those of the options that are set, by name, with their values."""
    found = {name: getattr(config, name, None) for name in options}
    return {name: str(value) for name, value in found.items() if value not in (None, False, 0, 0.0, "", [])}


def activation(config: Any, path: Path) -> str:
    """This project's name of the network's activation.

    Raises:
        ConfigError: there is none.
    """
    name = str(config.activation_fn)
    if name not in ACTIVATIONS:
        raise refuse(path, f"--activation-fn {name}", f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def refuse(path: Path, got: str, expected: str = "a network without it") -> ConfigError:
    """The error for a network that has no elastic form."""
    return ConfigError(f"{path} was trained with {got}, which has no elastic form; expected {expected}")
