"""Linear layers whose experts are mixed by coefficients that a router makes from the architecture.

Mixture-of-Supernets, equations 4 (layer-wise) and 5 (neuron-wise). As in the authors' experiments the bias is mixed by
the same coefficients as its row, and sizes are sliced before mixing. For a fixed architecture the mixture is a constant
matrix: it is computed once per architecture and step, and once for all at extraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.low_rank import low_rank_experts, mix_low_rank, start_factors
from nas_core.layers.modes import without_autocast
from nas_core.layers.routers import ROUTERS
from nas_core.layers.starts import SPREAD, STARTS, near_copies
from nas_core.layers.weights import Affine

NONE = "none"
"""Plain weight sharing: no experts and no router."""


def mixtures() -> list[str]:
    """Every value of :attr:`MoSConfig.kind`: ``none`` and the routers' names."""
    return [NONE, *ROUTERS.names()]


MOST_ROUTER_LAYERS, MOST_WIDTH = 100, 2**16
"""Bounds of what a file can ask for."""


@dataclass(frozen=True, kw_only=True)
class MoSConfig:
    """What a Mixture-of-Supernets adds to an elastic feed-forward layer."""

    kind: str = NONE
    """``none`` (plain weight sharing) or a router: ``layer`` (one mixture per matrix), ``neuron`` (one per row), .."""
    experts: int = 2
    """Number of full-size experts per linear layer, M (paper: 2)."""
    router_hidden: int = 128
    """Width of the router's hidden layers (paper: 128)."""
    router_layers: int = 2
    """Linear layers of the router (paper's Table 13: 2 is best)."""
    router_dropout: float = 0.0
    """Dropout after each hidden layer of the router, in training."""
    share_router: bool | None = None
    """One router for both linears of a feed-forward layer; default: where the kind of router can be shared."""
    encoding: str = "summary"
    """What routers read of an architecture: ``summary``, one number per choice with layers averaged, as for translation
    in the paper; ``layers``, one per choice and layer, as for BERT; or ``onehot``."""
    start: str = "independent"
    """How experts begin: ``independent``, each drawn on its own, as the authors' do; ``equal``, copies of one, which
    part as their routers give them different shares; or ``near``, copies that differ by 2% of their deviation."""
    rank: int = 0
    """The first expert is full, the others differ from it by a matrix of this rank, which begins at zero unless
    ``start`` is ``near``; 0: all are full."""

    def __post_init__(self) -> None:
        if self.kind == NONE:
            return
        if self.kind not in ROUTERS.names():
            raise unknown_choice(ROUTERS.what, self.kind, mixtures())
        if self.experts < 1 or self.router_hidden < 1 or self.router_layers < 1:
            raise ConfigError(
                f"experts {self.experts}, router hidden {self.router_hidden}, router layers {self.router_layers}:"
                " each must be at least 1"
            )
        if self.router_layers > MOST_ROUTER_LAYERS or max(self.experts, self.router_hidden) > MOST_WIDTH:
            raise ConfigError(
                f"experts {self.experts}, router hidden {self.router_hidden}, router layers {self.router_layers};"
                f" expected at most {MOST_WIDTH}, {MOST_WIDTH} and {MOST_ROUTER_LAYERS}"
            )
        if not 0 <= self.router_dropout < 1:
            raise ConfigError(f"router dropout {self.router_dropout}; expected a share from 0 to below 1")
        if self.share_router and not ROUTERS.get(self.kind).shareable:
            raise ConfigError(
                f"{self.kind}-wise routers have outputs of one layer's size and cannot be shared; drop share_router"
            )
        if self.start not in STARTS:
            raise unknown_choice("start of experts (--mos-start)", self.start, STARTS)
        if self.rank < 0 or (self.rank and self.experts < 2):
            raise ConfigError(
                f"rank {self.rank} of the differences of {self.experts} experts; expected 0 (full experts), or more"
                " with at least 2 experts"
            )

    @property
    def shared(self) -> bool:
        """Whether one router serves both linear layers of a feed-forward layer."""
        return self.kind != NONE and ROUTERS.get(self.kind).shareable and self.share_router is not False


def mix(experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
    """Experts ``(M, O, I)`` and coefficients ``(M,)`` or ``(O, M)`` to one matrix of the sizes that are asked for.

    The matrix is of the experts' type. Coefficients, and the gradient of each, a sum over a row or the whole matrix,
    may be float32 where experts are halves.
    """
    mixed: Tensor = _Mix.apply(experts, coefficients, out_features, in_features)  # type: ignore[no-untyped-call]
    return mixed


class _Mix(torch.autograd.Function):
    """``sum_i c_i E_i[:o, :i]`` in one pass over the experts, forward and backward.

    The gradient is written straight into an expert-shaped buffer; autograd's own slicing would fill, copy and add one
    such buffer for every expert.
    """

    @staticmethod
    def forward(ctx: Any, experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
        ctx.save_for_backward(experts, coefficients)
        used = prefix(experts, len(experts), out_features, in_features)
        columns = _columns(coefficients.to(experts.dtype))
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
        columns = _columns(coefficients.to(experts.dtype))
        for target, column in zip(prefix(grad_experts, *used.shape), columns, strict=True):
            torch.mul(grad, column, out=target)
        grad = grad.to(torch.promote_types(grad.dtype, torch.float32))
        with without_autocast(grad):
            rows = torch.stack([torch.linalg.vecdot(expert.to(grad.dtype), grad) for expert in used], dim=-1)
        summed = rows if coefficients.dim() == 2 else rows.sum(0)
        return grad_experts, summed.to(coefficients.dtype), None, None


def _columns(coefficients: Tensor) -> tuple[Tensor, ...]:
    """The coefficient of each expert, broadcastable to ``(O, I)``."""
    if coefficients.dim() == 1:
        return coefficients.unbind()
    return tuple(column[:, None] for column in coefficients.unbind(dim=1))


class MoSLinear(nn.Module):
    """An elastic linear layer of M experts, mixed into one matrix by coefficients ``(M,)`` or ``(O, M)``.

    Its parameters are ``weight`` (M, O, I) and ``bias`` (M, O). With experts of low rank, ``weight`` (1, O, I) is the
    first of them, and ``left`` (M - 1, O, r) and ``right`` (M - 1, r, I) are the factors of what the others add to it.

    Raises:
        ConfigError: the rank of the experts is above that of the layer.
    """

    def __init__(self, in_features: int, out_features: int, config: MoSConfig) -> None:
        super().__init__()
        full = 1 if config.rank else config.experts
        drawn = [ElasticLinear(in_features, out_features) for _ in range(full if config.start == STARTS[0] else 1)]
        spread = SPREAD if config.start == "near" else 0.0
        if len(drawn) == full:
            weight = torch.stack([each.weight.detach() for each in drawn])
        else:
            weight = near_copies(drawn[0].weight, full, spread)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(config.experts, out_features))
        self.rank = config.rank
        if config.rank:
            left, right = start_factors(weight[0], config.experts, config.rank, spread)
            self.left, self.right = nn.Parameter(left), nn.Parameter(right)

    def experts(self) -> Tensor:
        """Every expert as a full matrix, ``(M, O, I)``."""
        return low_rank_experts(self.weight[0], self.left, self.right) if self.rank else self.weight

    def select(self, in_features: int, out_features: int, coefficients: Tensor) -> Affine:
        """The mixed weight ``(out_features, in_features)`` and bias ``(out_features,)``."""
        exact = torch.promote_types(self.weight.dtype, torch.float32)
        with without_autocast(self.weight):
            coefficients = coefficients.to(exact)
            if self.rank:
                first, factors = self.weight[0], (self.left, self.right)
                weight = mix_low_rank(first, *factors, coefficients, out_features, in_features)
            else:
                weight = mix(self.weight, coefficients, out_features, in_features)
            by_expert = coefficients if coefficients.dim() == 1 else coefficients.t()
            bias = prefix(self.bias, len(self.bias), out_features).to(exact)
            mixed = by_expert @ bias if by_expert.dim() == 1 else (by_expert * bias).sum(0)
            return Affine(weight, mixed.to(self.bias.dtype))


def naive_mix(experts: Tensor, coefficients: Tensor, out_features: int, in_features: int) -> Tensor:
    """Equations 4 and 5 as written, in float32: the reference of :func:`mix`."""
    used = experts[:, :out_features, :in_features].float()
    if coefficients.dim() == 1:
        return torch.einsum("m,moi->oi", coefficients.float(), used)
    return sum((torch.diag(coefficients[:, i].float()) @ used[i] for i in range(len(used))), torch.zeros_like(used[0]))
