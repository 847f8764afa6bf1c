"""Linear layers whose experts are mixed by a router that reads the architecture.

Mixture-of-Supernets, equations 4 (layer-wise) and 5 (neuron-wise). As in the authors' experiments the bias is mixed by
the same coefficients as its row, and sizes are sliced before mixing. For a fixed architecture the mixture is a constant
matrix: it is computed once per architecture and step, and once for all at extraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.weights import Affine

KINDS = ("none", "layer", "neuron")


@dataclass(frozen=True, kw_only=True)
class MoSConfig:
    """What a Mixture-of-Supernets adds to an elastic feed-forward layer."""

    kind: str = "none"
    """``none`` (plain weight sharing), ``layer`` (one mixture per matrix) or ``neuron`` (one per row)."""
    experts: int = 2
    """Number of full-size experts per linear layer, M (paper: 2)."""
    router_hidden: int = 128
    """Width of the router's hidden layers (paper: 128)."""
    router_layers: int = 2
    """Linear layers of the router (paper's Table 13: 2 is best)."""
    router_dropout: float = 0.0
    """Dropout after each hidden layer of the router, in training."""
    share_router: bool | None = None
    """One router for both linears of a feed-forward layer; default: shared if layer-wise, own if neuron-wise."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_choice("kind of mixture (--mos)", self.kind, KINDS)
        if self.kind != "none" and (self.experts < 1 or self.router_hidden < 1 or self.router_layers < 1):
            raise ConfigError(
                f"experts {self.experts}, router hidden {self.router_hidden}, router layers {self.router_layers}:"
                " each must be at least 1"
            )
        if self.kind == "neuron" and self.share_router:
            raise ConfigError("neuron-wise routers have one output per row and cannot be shared; drop share_router")

    @property
    def shared(self) -> bool:
        return self.kind == "layer" and self.share_router is not False


class Router(nn.Module):
    """An MLP from an architecture's encoding ``(F,)`` to mixing coefficients.

    Layer-wise: ``(M,)``, one softmax. Neuron-wise: ``(O, M)``, a softmax per row; of its last linear only the rows of
    the neurons in use are computed. The last linear of a neuron-wise router starts xavier-uniform with zero bias, all
    others as torch does, like the authors'.
    """

    def __init__(self, features: int, config: MoSConfig, neurons: int | None = None) -> None:
        super().__init__()
        self.experts = config.experts
        self.neurons = neurons
        widths = [features] + [config.router_hidden] * (config.router_layers - 1)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(widths[-1], config.experts * (neurons or 1))
        self.dropout = config.router_dropout
        if neurons is not None:
            nn.init.xavier_uniform_(self.out.weight)
            nn.init.zeros_(self.out.bias)

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        x = encoding.to(self.out.weight.dtype)
        for layer in self.hidden:
            x = nn.functional.dropout(torch.relu(layer(x)), self.dropout, self.training)
        if self.neurons is None:
            logits = self.out(x)
        else:
            rows = self.experts * out_features
            logits = nn.functional.linear(x, prefix(self.out.weight, rows), prefix(self.out.bias, rows))
            logits = logits.view(out_features, self.experts)
        return torch.softmax(logits.float(), dim=-1).to(x.dtype)


class _Mix(torch.autograd.Function):
    """``sum_i c_i E_i[:o, :i]`` in one pass over the experts, forward and backward.

    The gradient is written straight into an expert-shaped buffer; autograd's own slicing would fill, copy and add one
    such buffer for every expert.
    """

    @staticmethod
    def forward(ctx: Any, experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
        ctx.save_for_backward(experts, coefficients)
        used = prefix(experts, len(experts), out_features, in_features)
        columns = _columns(coefficients)
        mixed = used[0] * columns[0]
        for expert, column in zip(used[1:], columns[1:], strict=True):
            mixed.addcmul_(expert, column)
        return mixed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (grad,) = grads
        experts, coefficients = ctx.saved_tensors
        used = prefix(experts, len(experts), *grad.shape)
        full = used.shape == experts.shape
        grad_experts = torch.empty_like(experts) if full else torch.zeros_like(experts)
        for target, column in zip(prefix(grad_experts, *used.shape), _columns(coefficients), strict=True):
            torch.mul(grad, column, out=target)
        rows = torch.stack([torch.linalg.vecdot(expert, grad) for expert in used], dim=-1)
        return grad_experts, rows if coefficients.dim() == 2 else rows.sum(0), None, None


def _columns(coefficients: Tensor) -> tuple[Tensor, ...]:
    """The coefficient of each expert, broadcastable to ``(O, I)``."""
    if coefficients.dim() == 1:
        return coefficients.unbind()
    return tuple(column[:, None] for column in coefficients.unbind(dim=1))


class MoSLinear(nn.Module):
    """An elastic linear layer of M experts, mixed into one matrix by coefficients ``(M,)`` or ``(O, M)``."""

    def __init__(self, in_features: int, out_features: int, config: MoSConfig) -> None:
        super().__init__()
        experts = [ElasticLinear(in_features, out_features) for _ in range(config.experts)]
        self.weight = nn.Parameter(torch.stack([expert.weight.detach() for expert in experts]))
        self.bias = nn.Parameter(torch.stack([expert.bias.detach() for expert in experts]))

    def select(self, in_features: int, out_features: int, coefficients: Tensor) -> Affine:
        """The mixed weight ``(out_features, in_features)`` and bias ``(out_features,)``."""
        coefficients = coefficients.to(self.weight.dtype)  # autocast gives half-precision coefficients
        weight = _Mix.apply(self.weight, coefficients, out_features, in_features)  # type: ignore[no-untyped-call]
        by_expert = coefficients if coefficients.dim() == 1 else coefficients.t()
        bias = prefix(self.bias, len(self.bias), out_features)
        mixed = by_expert @ bias if by_expert.dim() == 1 else (by_expert * bias).sum(0)
        return Affine(weight, mixed)


def naive_mix(experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
    """Equations 4 and 5 as written, in float32: the reference of :class:`MoSLinear`."""
    used = experts[:, :out_features, :in_features].float()
    if coefficients.dim() == 1:
        return torch.einsum("m,moi->oi", coefficients.float(), used)
    return sum((torch.diag(coefficients[:, i].float()) @ used[i] for i in range(len(used))), torch.zeros_like(used[0]))
