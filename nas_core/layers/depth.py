"""Selection of layers for a shallower network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nas_core.errors import ConfigError

Layer = TypeVar("Layer")


def kept_layers(layers: Iterable[Layer], depth: int, order: Sequence[int] = ()) -> list[Layer]:
    """Return ``depth`` layers in execution order.

    Args:
        order: indices of all layers by decreasing importance. If empty, the first ``depth`` layers are kept, as in HAT.
    """
    all_layers = list(layers)
    return [all_layers[index] for index in sorted(order[:depth])] if order else all_layers[:depth]


def check_order(order: Sequence[int], layers: int, side: str = "layers") -> tuple[int, ...]:
    """Raise ``ConfigError`` unless ``order`` is empty or contains each layer index once."""
    if order and sorted(order) != list(range(layers)):
        raise ConfigError(
            f"the order of {side} by importance is {list(order)}; expected each index from 0 to {layers - 1} once"
        )
    return tuple(order)
