"""The order in which shallower networks leave out layers: first those whose absence costs least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

__all__ = ["MOST_TRIED", "depth_order"]

MOST_TRIED = 12
"""Layers of a side up to which every layer is judged anew after each one that was left out."""


def depth_order(
    sides: Mapping[str, int], loss: Callable[[Mapping[str, Sequence[int]]], float]
) -> dict[str, tuple[int, ...]]:
    """For each side, its layers from the one that is kept longest to the one that is left out first.

    One layer after the other is left out, each time that without which the loss is lowest; the other sides are whole.
    On sides of more than :data:`MOST_TRIED` layers all are judged once, in the whole network.

    Args:
        sides: number of layers of each side.
        loss: of the network that runs only these layers of each side.
    """
    return {side: _order(side, count, loss) for side, count in sides.items()}


def _order(side: str, count: int, loss: Callable[[Mapping[str, Sequence[int]]], float]) -> tuple[int, ...]:
    def without(kept: Sequence[int]) -> dict[int, float]:
        return {layer: loss({side: [other for other in kept if other != layer]}) for layer in kept}

    kept = list(range(count))
    if count > MOST_TRIED:
        costs = without(kept)
        return tuple(sorted(kept, key=lambda layer: (-costs[layer], layer)))
    left_out: list[int] = []
    while len(kept) > 1:
        costs = without(kept)
        worst = min(reversed(kept), key=lambda layer: costs[layer])
        kept.remove(worst)
        left_out.append(worst)
    return (*kept, *reversed(left_out))
