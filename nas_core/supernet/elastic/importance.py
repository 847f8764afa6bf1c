"""Importance of heads, hidden units and channels of a trained network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import check_choice
from nas_core.layers.torch_modes import evaluating
from nas_core.models.elastic import Axis
from nas_core.supernet.teacher.taps import Taps

CRITERIA = ("activation", "weight", "none")

Loss = Callable[[Any], Tensor]


def importance(
    net: nn.Module, axes: Sequence[Axis], criterion: str, batches: Sequence[Any] = (), loss: Loss | None = None
) -> dict[str, Tensor]:
    """Return the importance of heads, hidden units and channels, as ``(size,)`` by name of the axis.

    - ``weight``: norm of all weights of a head, unit or channel. Needs no data.
    - ``activation``: root mean square of activations times norm of the weights that use them (Sun et al. 2023, "A
      Simple and Effective Pruning Approach for Large Language Models", equation 1).
    - ``none``: no importance; the order does not change.

    Args:
        batches: calibration data, for ``activation``.
        loss: function from a batch to the loss of the largest subnet.
    """
    check_choice("criterion of importance (--importance)", criterion, CRITERIA)
    if criterion == "none":
        return {}
    state = net.state_dict(keep_vars=True)
    if criterion == "weight":
        return {axis.name: _weight_norms(axis, state) for axis in axes}
    read_by = {name: state[name] for axis in axes for name in axis.read_by}
    sums = {name: torch.zeros(weight.shape[1], device=weight.device) for name, weight in read_by.items()}
    counts = {name: torch.zeros((), device=weight.device) for name, weight in read_by.items()}
    assert loss is not None
    with evaluating(net):
        for batch in batches:
            _add_squares(_record_inputs(read_by, loss, batch), sums, counts)
    scores = {
        name: total / counts[name].clamp(min=1) * read_by[name].detach().float().square().sum(0)
        for name, total in sums.items()
    }
    return {axis.name: _axis_scores(axis, scores) for axis in axes}


def _record_inputs(read_by: dict[str, Tensor], loss: Loss, batch: Any) -> list[tuple[str, Tensor, Tensor]]:
    with torch.enable_grad(), Taps(read_by, inputs=True) as taps:
        value = loss(batch)
    read = [(name, x) for name, inputs in taps.inputs.items() for x in inputs]
    gradients: Sequence[Tensor | None] = torch.autograd.grad(value, [x for _, x in read], allow_unused=True)
    return [(name, x.detach(), g) for (name, x), g in zip(read, gradients, strict=True) if g is not None]


def _add_squares(
    recorded: Sequence[tuple[str, Tensor, Tensor]], sums: dict[str, Tensor], counts: dict[str, Tensor]
) -> None:
    for name, x, gradient in recorded:
        mask = gradient.ne(0).any(-1, keepdim=True)
        sums[name] += (x.float().square() * mask).flatten(0, -2).sum(0)
        counts[name] += mask.sum()


def _axis_scores(axis: Axis, sums: dict[str, Tensor]) -> Tensor:
    total = torch.zeros(axis.size)
    for name in axis.read_by:
        total += sums[name].cpu().view(axis.size, axis.unit).sum(1)
    return total.sqrt()


def _weight_norms(axis: Axis, state: dict[str, Tensor]) -> Tensor:
    total = torch.zeros(axis.size)
    for dimension in axis.dims:
        if not state[dimension.name].is_floating_point():  # numbers of the channels
            continue
        tensor = state[dimension.name].detach().float().cpu()
        squares = tensor.square().transpose(0, dimension.dim).flatten(1).sum(1) if tensor.ndim > 1 else tensor.square()
        total += squares.view(dimension.blocks, axis.size, -1).sum((0, 2))
    return total.sqrt()
