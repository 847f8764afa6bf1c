"""Order in which layers are removed from shallower networks, by ablation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from nas_core.layers.torch_modes import evaluating
from nas_core.random_streams import own_streams

RECOVERY = 20
"""Number of updates before an evaluation if no network works without a layer."""
MAX_RETRIED_LAYERS = 12
"""Largest depth of an encoder or decoder whose layers are all evaluated again after each removal."""
# Beyond it, losses do not rank layers: on Multi30k, networks with one of three decoder layers have 7.0, 6.6 and 9.6
# nats, but 3.0, 2.4 and 2.4 after 100 updates.
MAX_LOSS_RISE = 1.0
"""Largest rise of the loss in nats at which networks are evaluated without updates."""
MAX_RECOVERED_LAYERS = 6
"""Largest depth at which networks are evaluated after updates, because of the cost."""

Loss = Callable[[Mapping[str, Sequence[int]]], float]


def depth_order(
    sides: Mapping[str, int],
    loss: Loss,
    recovered: Loss | None = None,
    shallowest: Mapping[str, int] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Return the layers of each side (such as encoder and decoder) by decreasing importance.

    The layer with the lowest loss after its removal is removed first. Sides with more than :data:`MAX_RETRIED_LAYERS`
    layers are evaluated only once.

    Args:
        sides: number of layers of each side.
        loss: function from the layers of each side to the loss of the network.
        recovered: like ``loss``, after a few updates. Used for at most :data:`MAX_RECOVERED_LAYERS` layers if each
            removal raises the loss of the whole network by more than :data:`MAX_LOSS_RISE`.
        shallowest: smallest number of layers of each side. Default: 1.
    """
    max_loss = math.inf if recovered is None else loss({}) + MAX_LOSS_RISE
    min_layers = {side: (shallowest or {}).get(side, 1) for side in sides}
    return {
        side: _order(side, count, min_layers[side], max_loss, loss, recovered or loss) for side, count in sides.items()
    }


def _order(side: str, count: int, min_layers: int, max_loss: float, loss: Loss, recovered: Loss) -> tuple[int, ...]:
    def without(layers: Sequence[int], evaluate: Loss) -> dict[int, float]:
        return {layer: evaluate({side: [other for other in layers if other != layer]}) for layer in layers}

    remaining = list(range(count))
    if count > MAX_RETRIED_LAYERS:
        costs = without(remaining, loss)
        return tuple(sorted(remaining, key=lambda layer: (-costs[layer], layer)))
    removed: list[int] = []
    while len(remaining) > min_layers:
        costs = without(remaining, loss)
        if min(costs.values()) > max_loss and len(remaining) <= MAX_RECOVERED_LAYERS:
            costs = without(remaining, recovered)
        least_important = min(reversed(remaining), key=lambda layer: costs[layer])
        remaining.remove(least_important)
        removed.append(least_important)
    return (*remaining, *reversed(removed))


def mean_loss(trained: Any, layers: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """Return the mean loss of the largest subnet with only ``layers``, by side."""
    net = trained.net
    with evaluating(net), torch.no_grad():
        subnet = trained.form.select_layers(net, net.select(trained.space.largest()), layers)
        return float(torch.stack([trained.loss(net, subnet, batch) for batch in batches]).mean())


def recovered_loss(trained: Any, layers: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """Return the loss on every second batch after :data:`RECOVERY` updates on the others. Weights are restored."""
    train, held_out = batches[::2], batches[1::2]
    if not held_out:
        return mean_loss(trained, layers, batches)
    net = trained.net
    before, training = {name: tensor.clone() for name, tensor in net.state_dict().items()}, net.training
    optimizer = torch.optim.Adafactor(net.parameters(), lr=0.02)  # steps relative to a weight's size
    net.train()
    try:
        with own_streams(0, next(net.parameters()).device):  # equal dropout for every layer
            for update in range(RECOVERY):
                subnet = trained.form.select_layers(net, net.select(trained.space.largest()), layers)
                optimizer.zero_grad()
                trained.loss(net, subnet, train[update % len(train)]).backward()
                optimizer.step()  # type: ignore[no-untyped-call]
        return mean_loss(trained, layers, held_out)
    finally:
        net.load_state_dict(before)
        net.zero_grad()
        net.train(training)
