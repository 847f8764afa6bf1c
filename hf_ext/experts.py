"""Experts of the feed-forward layers of a supernet (Mixture-of-Supernets)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nas_core.layers.mos import ROUTERS, MoSConfig, mix
from nas_core.models.static import encoding_size, router_encoding
from nas_core.space import Architecture, SearchSpace


class Experts(nn.Module):
    """Differences of M experts from each trained weight, mixed by a router that reads the architecture.

    Differences are initially 0, so that experts do not change the largest network.

    Args:
        weights: weights ``(O, I)`` and biases ``(O,)`` of linear layers by name.
    """

    def __init__(self, weights: Mapping[str, Tensor], space: SearchSpace, config: MoSConfig) -> None:
        super().__init__()
        self.space, self.config, features = space, config, encoding_size(space, config)
        zeros = {_key(name): torch.zeros(config.experts, *tensor.shape) for name, tensor in weights.items()}
        self.differences = nn.ParameterDict(zeros)
        self.routers = nn.ModuleDict()
        for name, tensor in weights.items():
            self.routers[_layer(name)] = ROUTERS[config.kind](features, config, len(tensor))

    def __contains__(self, name: str) -> bool:
        return _key(name) in self.differences

    def encoding(self, architecture: Architecture) -> Tensor | None:
        return router_encoding(self.space, architecture, self.config, next(self.parameters()).device)

    def forward(self, name: str, tensor: Tensor, encoding: Tensor) -> Tensor:
        """Return a slice of a trained weight or bias plus the mixed differences of the experts."""
        mixture = self.routers[_layer(name)](encoding, len(tensor))
        differences = self.differences[_key(name)]
        if tensor.ndim == 1:
            return tensor + mix(differences[..., None], mixture, len(tensor), 1)[:, 0]
        return tensor + mix(differences, mixture, *tensor.shape)


def _key(name: str) -> str:
    return name.replace(".", "/")


def _layer(name: str) -> str:
    return _key(name.rpartition(".")[0])
