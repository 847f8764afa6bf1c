"""Which options of fairseq's transformers have no elastic form, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nas_core.errors import CheckpointError, ConfigError

_Found = TypeVar("_Found")

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "tanh": "tanh",
}
"""fairseq's ``--activation-fn`` -> :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""


def readable(read: Callable[..., _Found]) -> Callable[..., _Found]:
    """Let a function of the settings in a checkpoint, whose last argument is its path, say in one line that they are
    damaged: a width that is a text, no heads, a list in the place of a group."""

    @functools.wraps(read)
    def checked(*arguments: Any) -> _Found:
        try:
            return read(*arguments)
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise CheckpointError(f"{arguments[-1]} has damaged settings ({reason}); write it again") from None

    return checked


def check_sizes(path: Path, layers: int, width: int, hidden: int, heads: int) -> None:
    """Raise where these are no layers.

    Raises:
        ConfigError: a number below 1, or channels that the heads cannot share.
    """
    if min(layers, width, hidden, heads) < 1 or width % heads:
        got = f"{layers} layers of {width} channels, {hidden} hidden units and {heads} heads"
        raise refuse(path, got, "layers whose heads share the channels")


def switched_on(config: Any, options: Iterable[str]) -> dict[str, str]:
    """Those of the options that are set, by name, with their values."""
    found = {name: getattr(config, name, None) for name in options}
    return {name: str(value) for name, value in found.items() if value not in (None, False, 0, 0.0, "", [])}


def check_off(options: Mapping[str, str], path: Path) -> None:
    """Raise where options of the network have no elastic form.

    Args:
        options: those that are set, by name, with their values.

    Raises:
        ConfigError: there are some; the first is named.
    """
    for name, value in options.items():
        shown = f"--{name.replace('_', '-')}"
        raise refuse(path, shown if value == "True" else f"{shown} {value}")


def task_in(groups: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a checkpoint's task, and its options, however fairseq stored them."""
    task = groups.get("task")
    options = dict(task) if isinstance(task, Mapping) else dict(vars(task)) if task is not None else {}
    return str(options.get("_name") or options.get("task")), options


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
