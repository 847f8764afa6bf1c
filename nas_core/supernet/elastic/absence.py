"""What the absence of layers costs a trained network, as it is and after a few updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from nas_core.random_streams import own_streams

if TYPE_CHECKING:
    from nas_core.supernet.elastic.take_over import Trained

RECOVERY = 20
"""Updates after which a layer's absence is judged where no network works without it."""


def mean_loss(trained: Trained, kept: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """The mean loss of the largest subnet that runs only these layers of each side, over batches.

    Args:
        kept: layers of each side by their index, all of a side that is not named.
    """
    net = trained.net
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            subnet = trained.form.running(net, net.select(trained.space.largest()), kept)
            return float(torch.stack([trained.loss(net, subnet, batch) for batch in batches]).mean())
    finally:
        net.train(training)


def recovered_loss(trained: Trained, kept: Mapping[str, Sequence[int]], batches: Sequence[Any]) -> float:
    """The same on every second batch, after :data:`RECOVERY` updates on the others. The weights are then as before.

    Of fewer than two batches there is nothing to learn from: the loss is that without updates.
    """
    learned, judged = batches[::2], batches[1::2]
    if not judged:
        return mean_loss(trained, kept, batches)
    net = trained.net
    before, training = {name: tensor.clone() for name, tensor in net.state_dict().items()}, net.training
    optimizer = torch.optim.Adafactor(net.parameters(), lr=0.02)  # steps are shares of a weight's size, in any network
    net.train()
    try:
        with own_streams(0, next(net.parameters()).device):  # dropout is the same for every layer
            for update in range(RECOVERY):
                subnet = trained.form.running(net, net.select(trained.space.largest()), kept)
                optimizer.zero_grad()
                trained.loss(net, subnet, learned[update % len(learned)]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()  # type: ignore[no-untyped-call]
        return mean_loss(trained, kept, judged)
    finally:
        net.load_state_dict(before)
        net.zero_grad()
        net.train(training)
