"""Losses of accuracy and latency prediction."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def ranking_loss(predicted: Tensor, target: Tensor, order: Tensor) -> Tensor:
    """Return the L1 error of the difference of each item ``(B,)`` to the one at ``order``, a permutation.

    NAR-Former, equation 9; NN-Former weighs it by 0.2.
    """
    return ((predicted - predicted[order]) - (target - target[order])).abs().mean()


def pairwise_loss(predicted: Tensor, target: Tensor, temperature: float) -> Tensor:
    """Return the mean of ln(1 + exp(-(p_i - p_j) / temperature)) over all pairs with y_i > y_j."""
    above = target[:, None] > target[None, :]
    gaps = (predicted[:, None] - predicted[None, :]) / temperature
    losses = functional.softplus(-gaps) * above
    return losses.sum() / above.sum().clamp(min=1)


def relative_loss(predicted: Tensor, target: Tensor) -> Tensor:
    return (predicted / target - 1).square().mean()


def log_loss(predicted: Tensor, target: Tensor) -> Tensor:
    return (predicted.log() - target.log()).square().mean()
