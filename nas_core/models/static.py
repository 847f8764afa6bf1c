"""The weights of one architecture of a supernet: what routers read, and what a static network gets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.layers import MoSConfig
from nas_core.space import Architecture, SearchSpace


class StaticPass(nn.Module):
    """A static network called with its inputs alone: the weights of its architecture are selected in each pass."""

    def __init__(self, net: nn.Module, architecture: Architecture) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture

    def forward(self, *inputs: Tensor) -> Any:
        return self.net(self.net.select(self.architecture), *inputs)  # type: ignore[operator]


def routed(space: SearchSpace, architecture: Architecture, mos: MoSConfig, device: torch.device | str) -> Tensor | None:
    """The encoding of an architecture, from which routers mix experts; None where there are none.

    Raises:
        ArchitectureError: the architecture lies outside the space. UnknownChoiceError: the settings name no encoding.
    """
    encoding = torch.from_numpy(space.encode(architecture, mos.encoding)[0])
    return None if mos.kind == "none" else encoding.to(device, non_blocking=True)


def routed_features(space: SearchSpace, mos: MoSConfig) -> int:
    """How many numbers :func:`routed` gives.

    Raises:
        UnknownChoiceError: the settings name no encoding.
    """
    return len(space.feature_names(mos.encoding))


def selected(net: nn.Module, architecture: Architecture) -> Any:
    """What the network's ``select`` gives in evaluation mode, without gradients; the network's own mode stays.

    Raises:
        ArchitectureError: the architecture lies outside the space.
    """
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            return net.select(architecture)  # type: ignore[operator]
    finally:
        net.train(training)


def copied(named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """A state dict of copies, which share nothing with the supernet."""
    return {name: tensor.detach().clone().contiguous() for name, tensor in named}
