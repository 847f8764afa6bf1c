"""Which layers a network of less depth keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from nas_core.errors import ConfigError

Layer = TypeVar("Layer")


def kept_layers(layers: Iterable[Layer], depth: int, order: Sequence[int] = ()) -> list[Layer]:
    """The layers of a network of ``depth`` layers, in the order in which they run.

    Args:
        order: indices of all layers, the one to be kept longest first; empty: the first ``depth`` layers are kept, as
            in HAT.
    """
    every = list(layers)
    return [every[index] for index in sorted(order[:depth])] if order else every[:depth]


def check_order(order: Sequence[int], layers: int, side: str = "layers") -> tuple[int, ...]:
    """The order as a tuple, if it names each of so many layers once; empty stands for the natural one.

    Raises:
        ConfigError: it does not.
    """
    if order and sorted(order) != list(range(layers)):
        raise ConfigError(f"the order of {side} is {list(order)}; expected each number from 0 to {layers - 1} once")
    return tuple(order)
