"""Mixture-of-Supernets: linear layers of several experts, and routers that mix them for an architecture.

As in the authors' experiments, a bias uses the routing weights of its row, and experts are sliced before mixing.

Shapes: F features of an encoding, M experts, O rows, I columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, check_choice
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.torch_modes import without_autocast
from nas_core.layers.weights import Affine

NONE = "none"
""":attr:`MoSConfig.kind` of plain weight sharing, without experts."""


@dataclass(frozen=True, kw_only=True)
class MoSConfig:
    """Settings of the experts of an elastic feed-forward layer."""

    kind: str = NONE
    """``none`` (plain weight sharing), ``layer`` (one mixture per matrix) or ``neuron`` (one per row)."""
    experts: int = 2
    """Number of experts per linear layer, M (paper: 2)."""
    router_hidden: int = 128
    """Width of the router's hidden layers (paper: 128)."""
    router_layers: int = 2
    """Number of linear layers of the router (paper: 2 is best, Table 13)."""
    router_temperature: float = 1.0
    """Divisor of the router's logits (paper: 1). A large value mixes experts evenly for all architectures."""
    encoding: str = "summary"
    """Encoding of architectures as input of routers, one of :data:`nas_core.space.space.ENCODINGS`. The paper uses
    ``summary`` for translation and ``layers`` for BERT."""

    def __post_init__(self) -> None:
        check_choice("kind of mixture (--mos)", self.kind, MIXTURES)
        if self.kind == NONE:
            return
        if self.experts < 1 or self.router_hidden < 1 or self.router_layers < 1:
            raise ConfigError(
                f"got experts {self.experts}, router_hidden {self.router_hidden}, router_layers {self.router_layers};"
                " expected at least 1 each"
            )
        if not 0 < self.router_temperature < float("inf"):
            raise ConfigError(f"router_temperature is {self.router_temperature}; expected a number above 0")


# -- routers -----------------------------------------------------------------------------------------------------------


class Router(nn.Module):
    """MLP from an architecture's encoding ``(F,)`` to routing weights of the experts.

    Subclasses define :meth:`rows` and :meth:`forward`.
    """

    shareable: ClassVar[bool] = False
    """True if one router can serve both linear layers of a feed-forward layer."""

    def __init__(self, features: int, config: MoSConfig, out_features: int) -> None:
        super().__init__()
        self.features, self.experts = features, config.experts
        widths = [features] + [config.router_hidden] * (config.router_layers - 1)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(widths[-1], config.experts * self.rows(out_features))
        self.temperature = config.router_temperature

    @staticmethod
    def rows(out_features: int) -> int:
        """Return the number of vectors of M routing weights for a layer with ``out_features`` outputs."""
        raise NotImplementedError

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        """Return routing weights ``(M,)`` of a matrix, or ``(O, M)`` of its rows."""
        raise NotImplementedError

    def mixtures(self, encoding: Tensor, rows: int) -> Tensor:
        """Return the routing weights ``(rows, M)`` of the first ``rows`` rows, in float32 or wider."""
        if encoding.shape != (self.features,):
            raise ConfigError(
                f"encoding of an architecture has shape {tuple(encoding.shape)}, expected ({self.features},); use"
                " torch.from_numpy(space.encode(architecture)[0])"
            )
        # The gradient of a routing weight, a sum over a matrix, overflows float16.
        exact = torch.promote_types(self.out.weight.dtype, torch.float32)
        size = self.experts * rows
        with without_autocast(encoding):
            x = encoding.to(exact)
            for layer in self.hidden:
                x = torch.relu(nn.functional.linear(x, *(parameter.to(exact) for parameter in layer.parameters())))
            weight, bias = prefix(self.out.weight, size).to(exact), prefix(self.out.bias, size).to(exact)
            logits = nn.functional.linear(x, weight, bias).view(rows, self.experts)
            return torch.softmax(logits / self.temperature, dim=-1)


class LayerRouter(Router):
    """Router with M routing weights per weight matrix (Mixture-of-Supernets, equation 4)."""

    shareable = True

    @staticmethod
    def rows(out_features: int) -> int:
        return 1

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        return self.mixtures(encoding, 1)[0]


class NeuronRouter(Router):
    """Router with M routing weights per row of a weight matrix (equation 5)."""

    def __init__(self, features: int, config: MoSConfig, out_features: int) -> None:
        super().__init__(features, config, out_features)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    @staticmethod
    def rows(out_features: int) -> int:
        return out_features

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        return self.mixtures(encoding, out_features)


ROUTERS: dict[str, type[Router]] = {"layer": LayerRouter, "neuron": NeuronRouter}
MIXTURES = (NONE, *ROUTERS)
"""Options of :attr:`MoSConfig.kind`."""


# -- linear layers of experts ------------------------------------------------------------------------------------------


class MoSLinear(nn.Module):
    """Elastic linear layer of M experts, mixed by routing weights ``(M,)`` or ``(O, M)``.

    Parameters are ``weight`` ``(M, O, I)`` and ``bias`` ``(M, O)``. Experts are initialised independently.
    """

    def __init__(self, in_features: int, out_features: int, config: MoSConfig) -> None:
        super().__init__()
        experts = [ElasticLinear(in_features, out_features).weight.detach() for _ in range(config.experts)]
        self.weight = nn.Parameter(torch.stack(experts))
        self.bias = nn.Parameter(torch.zeros(config.experts, out_features))

    def select(self, in_features: int, out_features: int, coefficients: Tensor) -> Affine:
        """Return the mixed weight ``(out_features, in_features)`` and bias ``(out_features,)``."""
        exact = torch.promote_types(self.weight.dtype, torch.float32)
        with without_autocast(self.weight):
            coefficients = coefficients.to(exact)
            weight = mix(self.weight, coefficients, out_features, in_features)
            by_expert = coefficients if coefficients.dim() == 1 else coefficients.t()
            bias = prefix(self.bias, len(self.bias), out_features).to(exact)
            mixed = by_expert @ bias if by_expert.dim() == 1 else (by_expert * bias).sum(0)
            return Affine(weight, mixed.to(self.bias.dtype))


def mix(experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
    """Mix experts ``(M, O, I)`` by routing weights ``(M,)`` or ``(O, M)``: ``(out_features, in_features)``."""
    mixed: Tensor = _Mix.apply(experts, coefficients, out_features, in_features)  # type: ignore[no-untyped-call]
    return mixed


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
        ctx.save_for_backward(experts, coefficients)
        weights = prefix(experts, len(experts), out_features, in_features)
        columns = _columns(coefficients.to(experts.dtype))
        mixed = weights[0] * columns[0]
        for expert, column in zip(weights[1:], columns[1:], strict=True):
            mixed.addcmul_(expert, column)
        return mixed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (grad,) = grads
        experts, coefficients = ctx.saved_tensors
        weights = prefix(experts, len(experts), *grad.shape)
        full = weights.shape == experts.shape
        # One buffer; autograd's slicing would fill, copy and add one per expert.
        grad_experts = torch.empty_like(experts) if full else torch.zeros_like(experts)
        columns = _columns(coefficients.to(experts.dtype))
        for target, column in zip(prefix(grad_experts, *weights.shape), columns, strict=True):
            torch.mul(grad, column, out=target)
        grad = grad.to(torch.promote_types(grad.dtype, torch.float32))
        with without_autocast(grad):
            rows = torch.stack([torch.linalg.vecdot(expert.to(grad.dtype), grad) for expert in weights], dim=-1)
        summed = rows if coefficients.dim() == 2 else rows.sum(0)
        return grad_experts, summed.to(coefficients.dtype), None, None


def _columns(coefficients: Tensor) -> tuple[Tensor, ...]:
    if coefficients.dim() == 1:
        return coefficients.unbind()
    return tuple(column[:, None] for column in coefficients.unbind(dim=1))
