"""How the experts of a mixture begin."""

from __future__ import annotations

import torch
from torch import Tensor

STARTS = ("independent", "equal", "near")
"""Each expert drawn on its own, copies of one, or copies that differ a little."""
SPREAD = 0.02
"""Standard deviation of what near experts differ by, over that of the weights that they are copies of."""


def near_copies(weight: Tensor, count: int, spread: float = SPREAD, stream: torch.Generator | None = None) -> Tensor:
    """``(M, ..)``: a tensor ``(..)`` and differences, normal with a mean over the copies of zero.

    Args:
        count: M; one copy is the tensor itself.
        spread: standard deviation of what is drawn, over that of the tensor; 0: equal copies.
        stream: random numbers of the CPU; default: torch's own.
    """
    copies = weight.detach().expand(count, *weight.shape)
    if not spread:
        return copies.clone()
    device = weight.device if stream is None else torch.device("cpu")
    drawn = torch.randn(count, *weight.shape, generator=stream, device=device)
    differences = (drawn - drawn.mean(0)) * spread * copies[0].float().std(correction=0).to(device)
    return copies.to(device) + differences.to(weight.dtype)
