"""Sorting of heads, hidden units and channels in all tensors of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nas_core.models.elastic import Axis, TensorDim


def sort_axes(net: nn.Module, axes: Sequence[Axis], scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sort the entries of axes by descending scores. The function of the largest network does not change.

    Args:
        scores: ``(size,)`` by name. Axes without scores are unchanged.

    Returns:
        Former indices ``(size,)`` of the entries of each sorted axis.
    """
    state = net.state_dict()
    orders = {}
    with torch.no_grad():
        for axis in axes:
            if axis.name not in scores:
                continue
            order = torch.argsort(scores[axis.name], descending=True, stable=True).cpu()
            orders[axis.name] = order
            for dimension in axis.dims:
                tensor = state[dimension.name]
                tensor.copy_(
                    tensor.index_select(dimension.dim, sort_indices(axis, dimension, tensor, order).to(tensor.device))
                )
    return orders


def sort_indices(axis: Axis, dimension: TensorDim, tensor: Tensor, order: Tensor) -> Tensor:
    """Return indices that sort ``dimension`` of ``tensor`` by the order ``(size,)`` of axis entries."""
    length = tensor.shape[dimension.dim] // dimension.blocks
    unit = length // axis.size
    numbers = order[:, None] * unit + torch.arange(unit)
    return (torch.arange(dimension.blocks)[:, None] * length + numbers.flatten()).flatten()
