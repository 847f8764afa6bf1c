"""How much each head, hidden unit and channel matters to a trained network.

Shapes: C numbers along an axis, in units of D (the head dimension of heads, else 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice
from nas_core.models.elastic import Axis
from nas_core.supernet.elastic.sorting import along
from nas_core.supernet.teacher.taps import Taps

__all__ = ["CRITERIA", "importance"]

CRITERIA = ("activation", "weight", "gradient", "none")
"""What importance is judged by, see :func:`importance`."""

Loss = Callable[[Any], Tensor]


def importance(
    net: nn.Module, axes: Sequence[Axis], criterion: str, batches: Iterable[Any] = (), loss: Loss | None = None
) -> dict[str, Tensor]:
    """Scores (size,) of the axes, by name.

    - ``weight``: the norm of all weights that belong to a head, unit or channel. Needs no data.
    - ``activation``: the root mean square of what it holds on the data, times the norm of the weights that read it (Sun
      et al. 2023, "A Simple and Effective Pruning Approach for Large Language Models", equation 1).
    - ``gradient``: how much the loss would change without it, to first order: the sum of activation times gradient
      over a sequence, its absolute value summed over the sequences (Molchanov et al. 2019; Michel et al. 2019).
    - ``none``: no scores, every order stays as it is.

    Args:
        batches: calibration data, for ``activation`` and ``gradient``.
        loss: of a batch, by the largest subnet of ``net``.

    Raises:
        UnknownChoiceError: no such criterion. ConfigError: it needs data, and there is none.
    """
    if criterion not in CRITERIA:
        raise unknown_choice("criterion of importance (--importance)", criterion, CRITERIA)
    if criterion == "none":
        return {}
    state = net.state_dict(keep_vars=True)
    if criterion == "weight":
        return {axis.name: _weight_norms(axis, state) for axis in axes}
    read_by = {name: state[name] for axis in axes for name in axis.read_by}
    sums = {name: torch.zeros(weight.shape[1], device=weight.device) for name, weight in read_by.items()}
    count = 0
    training = net.training
    net.eval()
    try:
        for batch in batches:
            if loss is None:
                break
            _add_batch(criterion, read_by, sums, axes, loss, batch)
            count += 1
    finally:
        net.train(training)
    if not count:
        raise ConfigError(f"importance by {criterion} needs calibration data; give it, or take weight or none")
    return {axis.name: _joined(axis, criterion, sums, read_by) for axis in axes}


def _add_batch(
    criterion: str, read_by: dict[str, Tensor], sums: dict[str, Tensor], axes: Sequence[Axis], loss: Loss, batch: Any
) -> None:
    by_gradient = criterion == "gradient"
    with torch.set_grad_enabled(by_gradient), Taps(read_by, inputs=True) as taps:
        value = loss(batch)
    recorded = [(name, x) for name, found in taps.inputs.items() for x in found]
    if not by_gradient:
        for name, x in recorded:
            sums[name] += x.detach().float().flatten(0, -2).square().mean(0)
        return
    tensors = [x for _, x in recorded]
    gradients: Sequence[Tensor | None] = torch.autograd.grad(value, tensors, allow_unused=True)
    units = {name: axis.unit for axis in axes for name in axis.read_by}
    for (name, x), gradient in zip(recorded, gradients, strict=True):
        if gradient is None:
            continue
        change = (x.detach() * gradient).float()
        each = change.flatten(1, -2).sum(1) if change.ndim > 2 else change
        together = each.unflatten(-1, (-1, units[name])).sum(-1, keepdim=True).abs().sum(0)
        sums[name] += together.expand(-1, units[name]).flatten() / units[name]


def _joined(axis: Axis, criterion: str, sums: dict[str, Tensor], read_by: dict[str, Tensor]) -> Tensor:
    total = torch.zeros(axis.size)
    for name in axis.read_by:
        found = sums[name].cpu()
        if criterion == "activation":
            found = found * read_by[name].detach().float().square().sum(0).cpu()
        total += found.view(axis.size, axis.unit).sum(1)
    return total.sqrt() if criterion == "activation" else total


def _weight_norms(axis: Axis, state: dict[str, Tensor]) -> Tensor:
    total = torch.zeros(axis.size)
    for part in axis.parts:
        tensor = state[part.name].detach().float().cpu()
        squares = tensor.square().transpose(0, part.dim).flatten(1).sum(1) if tensor.ndim > 1 else tensor.square()
        total += squares[along(axis, part.blocks, torch.arange(axis.size))].view(part.blocks, axis.size, -1).sum((0, 2))
    return total.sqrt()
