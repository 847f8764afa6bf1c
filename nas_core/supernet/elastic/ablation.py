"""Ablation of layers: the order in which shallower networks lose them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from nas_core.random_streams import own_streams

RECOVERY = 20
"""Updates before an evaluation if no network works without a layer."""
MOST_TRIED = 12
"""Largest depth of a side with a new evaluation of all layers after each removal."""
BROKEN = 1.0
"""Largest rise of the loss in nats at which networks are evaluated without updates. Beyond it the loss does not rank
layers: on Multi30k, networks with one of three decoder layers have 7.0, 6.6 and 9.6 nats, but 3.0, 2.4 and 2.4 after
100 updates."""
MOST_RECOVERED = 6
"""Largest depth with evaluations after updates: at most 20 trainings of a side."""

Loss = Callable[[Mapping[str, Sequence[int]]], float]


def depth_order(
    sides: Mapping[str, int],
    loss: Loss,
    recovered: Loss | None = None,
    shallowest: Mapping[str, int] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Return the layers of each side, from the one kept longest to the one removed first.

    Layers are removed greedily by the lowest loss without them, with the other sides whole. The layers of a side with
    more than :data:`MOST_TRIED` are evaluated once, in the whole network.

    Args:
        sides: number of layers of each side.
        loss: of the network with the given layers of each side.
        recovered: loss after a few updates, for the last :data:`MOST_RECOVERED` layers once every loss rises by more
            than :data:`BROKEN`.
        shallowest: smallest number of layers of each side (default: 1).
    """
    most = math.inf if recovered is None else loss({}) + BROKEN
    fewest = {side: (shallowest or {}).get(side, 1) for side in sides}
    return {side: _order(side, count, fewest[side], most, loss, recovered or loss) for side, count in sides.items()}


def _order(side: str, count: int, fewest: int, most: float, loss: Loss, recovered: Loss) -> tuple[int, ...]:
    def without(layers: Sequence[int], evaluate: Loss) -> dict[int, float]:
        return {layer: evaluate({side: [other for other in layers if other != layer]}) for layer in layers}

    remaining = list(range(count))
    if count > MOST_TRIED:
        costs = without(remaining, loss)
        return tuple(sorted(remaining, key=lambda layer: (-costs[layer], layer)))
    removed: list[int] = []
    while len(remaining) > fewest:
        costs = without(remaining, loss)
        if min(costs.values()) > most and len(remaining) <= MOST_RECOVERED:
            costs = without(remaining, recovered)
        worst = min(reversed(remaining), key=lambda layer: costs[layer])
        remaining.remove(worst)
        removed.append(worst)
    return (*remaining, *reversed(removed))


def mean_loss(trained: Any, kept: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """Return the mean loss of the largest subnet with the layers ``kept``; default: all of a side."""
    net = trained.net
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            subnet = trained.form.running(net, net.select(trained.space.largest()), kept)
            return float(torch.stack([trained.loss(net, subnet, batch) for batch in batches]).mean())
    finally:
        net.train(training)


def recovered_loss(trained: Any, kept: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """Return the loss on every second batch after :data:`RECOVERY` updates on the others, and restore the weights."""
    train, held_out = batches[::2], batches[1::2]
    if not held_out:
        return mean_loss(trained, kept, batches)
    net = trained.net
    before, training = {name: tensor.clone() for name, tensor in net.state_dict().items()}, net.training
    optimizer = torch.optim.Adafactor(net.parameters(), lr=0.02)  # steps relative to a weight's size
    net.train()
    try:
        with own_streams(0, next(net.parameters()).device):  # equal dropout for every layer
            for update in range(RECOVERY):
                subnet = trained.form.running(net, net.select(trained.space.largest()), kept)
                optimizer.zero_grad()
                trained.loss(net, subnet, train[update % len(train)]).backward()
                optimizer.step()  # type: ignore[no-untyped-call]
        return mean_loss(trained, kept, held_out)
    finally:
        net.load_state_dict(before)
        net.zero_grad()
        net.train(training)
