"""Initialisation of experts from a trained network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SPREAD = 0.02
"""Standard deviation of the differences between experts, relative to the weights."""


def copy_into_experts(plain: nn.Module, mixed: nn.Module) -> None:
    """Copy the weights of ``plain`` into ``mixed``, the same network with experts.

    Experts are the trained weights plus noise. The last layer of routers is 0, so that the noise cancels out.
    """
    # The noise gives routers a gradient.
    state, target = plain.state_dict(), mixed.state_dict()
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in target.items():
            if name not in state:
                if ".out." in name:
                    tensor.zero_()
            elif tensor.ndim == state[name].ndim + 1:
                tensor.copy_(near_copies(state[name], len(tensor), stream))
            else:
                tensor.copy_(state[name])
    mixed.load_state_dict(target)


def near_copies(weight: Tensor, count: int, stream: torch.Generator) -> Tensor:
    """Return copies ``(M, ..)`` of a tensor plus normal noise. The noise of all copies sums to 0."""
    drawn = torch.randn(count, *weight.shape, generator=stream)
    differences = (drawn - drawn.mean(0)) * SPREAD * weight.float().std(correction=0).cpu()
    return weight.cpu() + differences.to(weight.dtype)
