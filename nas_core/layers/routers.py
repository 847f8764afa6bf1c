"""Routers: from an architecture to the coefficients by which a layer's experts are mixed. One kind is one class.

Shapes: F numbers of the encoding, M experts, O rows of the layer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.linear import prefix
from nas_core.layers.modes import without_autocast
from nas_core.registry import Registry

if TYPE_CHECKING:
    from nas_core.layers.mos import MoSConfig


class Router(nn.Module):
    """An MLP from an architecture's encoding ``(F,)`` to mixtures of the experts, each a softmax.

    A kind says in :meth:`rows` how many mixtures a layer has, and makes coefficients of them in :meth:`forward`.
    """

    shareable: ClassVar[bool] = False
    """Whether one router can serve both linear layers of a feed-forward layer; it then does unless told otherwise."""

    def __init__(self, features: int, config: MoSConfig, out_features: int) -> None:
        super().__init__()
        self.features = features
        self.experts = config.experts
        widths = [features] + [config.router_hidden] * (config.router_layers - 1)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(widths[-1], config.experts * self.rows(out_features))
        self.dropout = config.router_dropout

    @staticmethod
    def rows(out_features: int) -> int:
        """Number of mixtures of a layer with O = ``out_features``; a smaller layer has the first ones of a larger."""
        raise NotImplementedError

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        """Coefficients ``(M,)`` of the whole matrix, or ``(O, M)`` of each row."""
        raise NotImplementedError

    def mixtures(self, encoding: Tensor, rows: int) -> Tensor:
        """The first mixtures, ``(rows, M)``; of the last linear only what they need is computed.

        Always in float32 (float64 in a float64 network), also under autocast and where parameters are halves: the
        gradient of a coefficient is a sum over a whole matrix and does not fit into float16. Of halves, only the
        parameters' own gradients are rounded to them.

        Raises:
            ConfigError: the encoding has another shape, or is no tensor.
        """
        if not isinstance(encoding, Tensor) or encoding.shape != (self.features,):
            shape = f"of shape {tuple(encoding.shape)}" if hasattr(encoding, "shape") else repr(encoding)
            raise ConfigError(
                f"the encoding of an architecture is a {type(encoding).__name__} {shape}, expected a tensor of shape"
                f" ({self.features},); 'torch.from_numpy(space.encode(architecture)[0])' is one"
            )
        exact = torch.promote_types(self.out.weight.dtype, torch.float32)
        used = self.experts * rows
        with without_autocast(encoding):
            x = encoding.to(exact)
            for layer in self.hidden:
                x = torch.relu(nn.functional.linear(x, *(parameter.to(exact) for parameter in layer.parameters())))
                x = nn.functional.dropout(x, self.dropout, self.training)
            weight, bias = prefix(self.out.weight, used).to(exact), prefix(self.out.bias, used).to(exact)
            return torch.softmax(nn.functional.linear(x, weight, bias).view(rows, self.experts), dim=-1)


class LayerRouter(Router):
    """One mixture for the whole matrix (Mixture-of-Supernets, equation 4)."""

    shareable = True

    @staticmethod
    def rows(out_features: int) -> int:
        return 1

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        return self.mixtures(encoding, 1)[0]


class NeuronRouter(Router):
    """One mixture for each row (Mixture-of-Supernets, equation 5).

    The last linear starts xavier-uniform with zero bias, like the authors'; all others start as torch's do.
    """

    def __init__(self, features: int, config: MoSConfig, out_features: int) -> None:
        super().__init__(features, config, out_features)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    @staticmethod
    def rows(out_features: int) -> int:
        return out_features

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        return self.mixtures(encoding, out_features)


ROUTERS: Registry[type[Router]] = Registry(
    "kind of mixture (--mos)",
    "",
    {
        "layer": "nas_core.layers.routers:LayerRouter",
        "neuron": "nas_core.layers.routers:NeuronRouter",
    },
    Router,
    of_classes=True,
)
