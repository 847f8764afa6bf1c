"""Selection of the weights of one architecture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.layers import MoSConfig
from nas_core.layers.torch_modes import evaluating
from nas_core.space import Architecture, SearchSpace


class SubnetModule(nn.Module):
    """Base class of modules that run one architecture of a network. Weights are selected in each pass."""

    net: Any

    def __init__(self, net: nn.Module, architecture: Architecture) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture


def router_encoding(
    space: SearchSpace, architecture: Architecture, mos: MoSConfig, device: torch.device | str
) -> Tensor | None:
    """Return the encoding of an architecture for routers, or None without experts."""
    encoding = torch.from_numpy(space.encode(architecture, mos.encoding)[0])
    return None if mos.kind == "none" else encoding.to(device, non_blocking=True)


def encoding_size(space: SearchSpace, mos: MoSConfig) -> int:
    return len(space.feature_names(mos.encoding))


def select_eval(net: nn.Module, architecture: Architecture) -> Any:
    """Call ``net.select`` in evaluation mode without gradients."""
    with evaluating(net), torch.no_grad():
        return net.select(architecture)  # type: ignore[operator]


def copy_state(named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone().contiguous() for name, tensor in named}
