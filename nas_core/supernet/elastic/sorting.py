"""Heads, hidden units and channels put in an order, in every tensor that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nas_core.models.elastic import Axis


def sort_axes(net: nn.Module, axes: Sequence[Axis], scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Put what scores highest first, so that smaller networks keep it; what the largest computes stays the same.

    Args:
        scores: for axes by name, (size,); others stay as they are.

    Returns:
        For each of these axes, the former place (size,) of what now comes first, second, ..
    """
    state = net.state_dict()
    orders = {}
    with torch.no_grad():
        for axis in axes:
            if axis.name not in scores:
                continue
            order = torch.argsort(scores[axis.name], descending=True, stable=True).cpu()
            orders[axis.name] = order
            for part in axis.parts:
                tensor = state[part.name]
                tensor.copy_(tensor.index_select(part.dim, along(axis, part.blocks, order).to(tensor.device)))
    return orders


def along(axis: Axis, blocks: int, order: Tensor) -> Tensor:
    """Indices into a dimension of ``blocks`` copies of an axis, for an order of its heads, units or channels."""
    numbers = order[:, None] * axis.unit + torch.arange(axis.unit)
    return (torch.arange(blocks)[:, None] * axis.size * axis.unit + numbers.flatten()).flatten()
