"""Losses for training accuracy and latency predictors."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def ranking_loss(predicted: Tensor, target: Tensor, order: Tensor) -> Tensor:
    """Return the mean L1 error of differences between each item ``(B,)`` and another one (NAR-Former, equation 9).

    Args:
        order: permutation ``(B,)``; item i is compared with item ``order[i]``.
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
