"""Experts of a Mixture-of-Supernets made from one trained feed-forward layer.

Shapes: M experts, O rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.feed_forward import ElasticFeedForward

__all__ = ["SPREAD", "copy_into_experts"]

SPREAD = 0.02
"""Standard deviation of what experts differ by, over that of the trained weights."""


def copy_into_experts(plain: nn.Module, mixed: nn.Module, spread: float = SPREAD, seed: int = 0) -> None:
    """Give a network with experts the weights of the same network without.

    Experts are the trained layer plus differences that sum to zero, and the routers' last linear starts at zero, so
    that at first every architecture mixes all experts equally and gets the trained weights. As the experts differ, the
    routers have a gradient from the first update on; equal ones would never part.

    Args:
        plain: the trained network; every tensor of it has a counterpart.
        mixed: the same network, built with experts.

    Raises:
        ConfigError: the two are not the same network.
    """
    state, target = plain.state_dict(), mixed.state_dict()
    routers = [f"{at}.routers." for at, layer in mixed.named_modules() if isinstance(layer, ElasticFeedForward)]
    missing = [name for name in target if name not in state and not name.startswith(tuple(routers))]
    if missing or any(name not in target for name in state):
        other = missing[0] if missing else next(name for name in state if name not in target)
        raise ConfigError(f"the networks with and without experts differ in {other}; build both from one space")
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in target.items():
            if name not in state:
                if ".out." in name:
                    tensor.zero_()
            elif tensor.ndim == state[name].ndim + 1:
                tensor.copy_(_experts(state[name], len(tensor), spread, stream))
            else:
                tensor.copy_(state[name])
    mixed.load_state_dict(target)


def _experts(trained: Tensor, count: int, spread: float, stream: torch.Generator) -> Tensor:
    """``(M, ..)``: the trained tensor ``(..)`` and differences whose mean over the experts is zero."""
    drawn = torch.randn(count, *trained.shape, generator=stream)
    differences = (drawn - drawn.mean(0)) * spread * trained.detach().float().std(correction=0).cpu()
    return trained.cpu() + differences.to(trained.dtype)
