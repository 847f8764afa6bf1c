"""Experts that differ from the first one by a matrix of low rank.

Expert 1 is a full matrix, ``E_i = E_1 + U_i V_i`` for the others. Coefficients of a mixture sum to one, so that
``sum_i c_i E_i = E_1 + sum_{i>1} c_i U_i V_i``: the equations of Mixture-of-Supernets hold as they are, with fewer
numbers in the experts. The factors are those of LoRA (Hu et al. 2022).

Shapes: M experts, O rows, I columns, r rank.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.linear import prefix


def start_factors(first: Tensor, count: int, rank: int, spread: float = 0.0) -> tuple[Tensor, Tensor]:
    """U (M - 1, O, r) and V (M - 1, r, I) beside the first expert (O, I).

    V is uniform up to ``1 / sqrt(I)``, and U zero, so that experts begin equal and part by their first gradient.

    Args:
        count: M.
        spread: standard deviation of the products' entries, over that of the first expert.

    Raises:
        ConfigError: the rank is above that of the matrix.
    """
    rows, columns = first.shape
    if rank > min(rows, columns):
        raise ConfigError(
            f"experts of rank {rank} in a layer of {columns} inputs and {rows} outputs; expected at most"
            f" {min(rows, columns)}, or 0 for full experts"
        )
    bound = columns**-0.5
    right = torch.empty(count - 1, rank, columns).uniform_(-bound, bound)
    left = torch.zeros(count - 1, rows, rank)
    if spread:
        each = bound * (rank / 3) ** 0.5  # the deviation of a product's entry where those of U have 1
        left.normal_().mul_(first.detach().std(correction=0) * spread / each)
    return left, right


def mix_low_rank(
    first: Tensor, left: Tensor, right: Tensor, coefficients: Tensor, out_features: int, in_features: int
) -> Tensor:
    """``E_1 + sum_{i>1} c_i U_i V_i`` of the sizes that are asked for, in one product.

    ``first`` (O, I), ``left`` (M - 1, O, r), ``right`` (M - 1, r, I), ``coefficients`` (M,) or (O, M), which sum to one
    and may be float32 where the others are halves; the matrix is of the type of ``first``.
    """
    shares = coefficients[1:, None] if coefficients.dim() == 1 else coefficients[:, 1:].t()
    used = prefix(left, len(left), out_features)
    scaled = (used.to(shares.dtype) * shares[..., None]).to(first.dtype)  # sums of its gradient do not fit in halves
    other = prefix(right, *right.shape[:2], in_features)
    return torch.addmm(prefix(first, out_features, in_features), scaled.transpose(0, 1).flatten(1), other.flatten(0, 1))


def low_rank_experts(first: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Every expert as a full matrix, (M, O, I); ``naive_mix`` of these is the reference of :func:`mix_low_rank`."""
    return torch.cat([first[None], first + left @ right])
