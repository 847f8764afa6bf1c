"""Elastic feed-forward layer, with or without experts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import check_choice
from nas_core.layers.linear import ElasticLinear
from nas_core.layers.mos import NONE, ROUTERS, MoSConfig, MoSLinear
from nas_core.layers.weights import Affine

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: F.relu(x, inplace=not torch.is_grad_enabled()),
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "tanh": torch.tanh,
}
"""Activation functions. ``gelu_tanh`` is called ``gelu_accurate`` in fairseq; ``quick_gelu`` is from CLIP."""


class FeedForwardWeights(NamedTuple):
    """Weights of a feed-forward layer for one architecture."""

    fc1: Affine
    fc2: Affine
    activation: str = "relu"
    """One of :data:`ACTIVATIONS`."""


class ElasticFeedForward(nn.Module):
    """Feed-forward layer ``fc2(activation(fc1(x)))`` of elastic width, with or without experts.

    Args:
        embed_dim: largest width.
        ffn_dim: largest hidden width.
        features: length of an architecture's encoding, ``len(space.feature_names(mos.encoding))``.
        activation: one of :data:`ACTIVATIONS`.
    """

    def __init__(self, embed_dim: int, ffn_dim: int, features: int, mos: MoSConfig, activation: str = "relu") -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.activation = activation
        self.fc1: Any
        self.fc2: Any
        self.routers = nn.ModuleList()
        if mos.kind == NONE:
            self.fc1, self.fc2 = ElasticLinear(embed_dim, ffn_dim), ElasticLinear(ffn_dim, embed_dim)
            return
        self.fc1, self.fc2 = MoSLinear(embed_dim, ffn_dim, mos), MoSLinear(ffn_dim, embed_dim, mos)
        router = ROUTERS[mos.kind]
        self.routers.extend(
            router(features, mos, rows) for rows in ((ffn_dim,) if router.shareable else (ffn_dim, embed_dim))
        )

    def routing(self, embed_dim: int, ffn_dim: int, encoding: Tensor | None) -> tuple[Tensor, ...]:
        """Return the routing weights of fc1 and fc2, empty without experts."""
        if not len(self.routers):
            return ()
        first = self.routers[0](encoding, ffn_dim)
        return first, self.routers[1](encoding, embed_dim) if len(self.routers) == 2 else first

    def select(self, embed_dim: int, ffn_dim: int, encoding: Tensor | None = None) -> FeedForwardWeights:
        """Return the weights of these sizes. Experts are mixed for an architecture's encoding ``(F,)``."""
        if mixtures := self.routing(embed_dim, ffn_dim, encoding):
            fc1 = self.fc1.select(embed_dim, ffn_dim, mixtures[0])
            fc2 = self.fc2.select(ffn_dim, embed_dim, mixtures[1])
        else:
            fc1, fc2 = self.fc1.select(embed_dim, ffn_dim), self.fc2.select(ffn_dim, embed_dim)
        return FeedForwardWeights(fc1, fc2, self.activation)

    def forward(self, x: Tensor, weights: FeedForwardWeights) -> Tensor:
        """Apply the layer to ``x`` ``(..., C)`` with weights of :meth:`select`."""
        return feed_forward(x, weights)


def feed_forward(x: Tensor, weights: FeedForwardWeights, dropout: float = 0.0) -> Tensor:
    """Apply a feed-forward layer to ``x`` ``(..., C)``."""
    hidden = ACTIVATIONS[weights.activation](F.linear(x, *weights.fc1))
    if dropout:
        hidden = F.dropout(hidden, dropout)
    return F.linear(hidden, *weights.fc2)
