"""The order in which shallower networks leave out layers: first those whose absence costs least."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

MOST_TRIED = 12
"""Layers of a side up to which every layer is judged anew after each one that was left out."""
BROKEN = 1.0
"""By how much the loss may rise, in nats, for a network to be judged as it is. The loss of one that lost more does not
say what its layers are worth: each of three decoder layers on Multi30k alone has 7.0, 6.6 and 9.6 nats at once, 4.6,
3.7 and 3.8 after :data:`nas_core.supernet.elastic.absence.RECOVERY` updates, and 3.0, 2.4 and 2.4 after 100."""
MOST_RECOVERED = 6
"""Layers from which on they are judged after updates, which bounds what that costs: 20 trainings of a side."""

Loss = Callable[[Mapping[str, Sequence[int]]], float]


def depth_order(
    sides: Mapping[str, int],
    loss: Loss,
    recovered: Loss | None = None,
    shallowest: Mapping[str, int] | None = None,
) -> dict[str, tuple[int, ...]]:
    """For each side, its layers from the one that is kept longest to the one that is left out first.

    One layer after the other is left out, each time that without which the loss is lowest; the other sides are whole.
    On sides of more than :data:`MOST_TRIED` layers all are judged once, in the whole network.

    Args:
        sides: number of layers of each side.
        loss: of the network that runs only these layers of each side.
        recovered: the same after a few updates; by it the last :data:`MOST_RECOVERED` layers are judged, once nothing
            that is left works: all are :data:`BROKEN`.
        shallowest: how many layers of each side no network leaves out; 1 where it is not named. They stand first, in
            their own order.
    """
    most = math.inf if recovered is None else loss({}) + BROKEN
    fewest = {side: (shallowest or {}).get(side, 1) for side in sides}
    return {side: _order(side, count, fewest[side], most, loss, recovered or loss) for side, count in sides.items()}


def _order(side: str, count: int, fewest: int, most: float, loss: Loss, recovered: Loss) -> tuple[int, ...]:
    def without(kept: Sequence[int], judged: Loss) -> dict[int, float]:
        return {layer: judged({side: [other for other in kept if other != layer]}) for layer in kept}

    kept = list(range(count))
    if count > MOST_TRIED:
        costs = without(kept, loss)
        return tuple(sorted(kept, key=lambda layer: (-costs[layer], layer)))
    left_out: list[int] = []
    while len(kept) > fewest:
        costs = without(kept, loss)
        if min(costs.values()) > most and len(kept) <= MOST_RECOVERED:
            costs = without(kept, recovered)
        worst = min(reversed(kept), key=lambda layer: costs[layer])
        kept.remove(worst)
        left_out.append(worst)
    return (*kept, *reversed(left_out))
