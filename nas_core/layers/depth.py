"""Selection of the layers of a shallower network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nas_core.errors import ConfigError

Layer = TypeVar("Layer")


def kept_layers(layers: Iterable[Layer], depth: int, order: Sequence[int] = ()) -> list[Layer]:
    """Return the layers of a network of ``depth`` layers, in their order of execution.

    Args:
        order: indices of all layers, most important first; empty: the first ``depth`` layers are kept, as in HAT.
    """
    every = list(layers)
    return [every[index] for index in sorted(order[:depth])] if order else every[:depth]


def check_order(order: Sequence[int], layers: int, side: str = "layers") -> tuple[int, ...]:
    """Return the order as a tuple, which may be empty.

    Raises:
        ConfigError: it does not contain each layer once.
    """
    if order and sorted(order) != list(range(layers)):
        raise ConfigError(f"the order of {side} is {list(order)}; expected each number from 0 to {layers - 1} once")
    return tuple(order)
