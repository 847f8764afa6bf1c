"""Proxies that read the gradient of the loss: its norm, and SNIP.

Abdelfattah et al., "Zero-Cost Proxies for Lightweight NAS", ICLR 2021, section 3.2. The sums run over matrices and
kernels, not over biases and gains; weights are as they were drawn, batch norms take the statistics of the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.proxies.base import Proxy
from nas_core.proxies.trial import Trial


class _GradNorm(Proxy):
    """The sum over layers of the Euclidean norm of the loss's gradient for their weights (not the norm of all of them
    together)."""

    name = "grad_norm"
    purpose = "norms of the loss's gradient, summed over layers"

    def score(self, trial: Trial) -> float:
        return _total([gradient.norm() for _, gradient in trial.sensitivities])


class _Snip(Proxy):
    """The sum over all weights of what the loss would change without them: the absolute product of weight and gradient.

    Lee et al., "SNIP: Single-shot Network Pruning based on Connection Sensitivity", ICLR 2019.
    """

    name = "snip"
    purpose = "weight times gradient of the loss, absolute, summed over weights"

    def score(self, trial: Trial) -> float:
        return _total([(weight * gradient).abs().sum() for weight, gradient in trial.sensitivities])


def _total(parts: list[Tensor]) -> float:
    return float(torch.stack([part.float() for part in parts]).sum())


GRAD_NORM, SNIP = _GradNorm(), _Snip()
