"""Losses for training accuracy and latency predictors."""

from __future__ import annotations

from torch import Tensor


def ranking_loss(predicted: Tensor, target: Tensor, order: Tensor) -> Tensor:
    """Return the mean L1 error of differences between each item ``(B,)`` and another one (NAR-Former, equation 9).

    Args:
        order: permutation ``(B,)``; item i is compared with item ``order[i]``.
    """
    return ((predicted - predicted[order]) - (target - target[order])).abs().mean()


def relative_loss(predicted: Tensor, target: Tensor) -> Tensor:
    return (predicted / target - 1).square().mean()


def log_loss(predicted: Tensor, target: Tensor) -> Tensor:
    return (predicted.log() - target.log()).square().mean()
