"""Models in which nothing is as it starts, so that what is wrong shows."""

from __future__ import annotations

import torch

from nas_core.predictor import NNFormer, NNFormerConfig


def lively(config: NNFormerConfig) -> NNFormer:
    """A model whose biases, norms and scales are not the constants they start as."""
    torch.manual_seed(5)
    model = NNFormer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model
