"""Experts of a Mixture-of-Supernets made from one trained feed-forward layer.

Shapes: M experts, O rows.
"""

from __future__ import annotations

import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.layers.feed_forward import ElasticFeedForward
from nas_core.layers.mos import SPREAD, MoSLinear, near_copies


def copy_into_experts(plain: nn.Module, mixed: nn.Module, spread: float = SPREAD, seed: int = 0) -> None:
    """Give a network with experts the weights of the same network without.

    Experts are the trained layer plus differences that sum to zero, and the routers' last linear starts at zero, so
    that at first every architecture mixes all experts equally and gets the trained weights. As the experts differ, the
    routers have a gradient from the first update on; equal ones would never part. Experts of low rank begin equal,
    with their left factors at zero: these have a gradient, and the routers when they have left zero. However the
    experts of the new network had begun (:attr:`nas_core.layers.MoSConfig.start`), they are overwritten.

    Args:
        plain: the trained network; every tensor of it has a counterpart.
        mixed: the same network, built with experts.

    Raises:
        ConfigError: the two are not the same network.
    """
    state, target = plain.state_dict(), mixed.state_dict()
    routers = [f"{at}.routers." for at, layer in mixed.named_modules() if isinstance(layer, ElasticFeedForward)]
    mixtures = [at for at, layer in mixed.named_modules() if isinstance(layer, MoSLinear) and layer.rank]
    left, right = ([f"{at}.{side}" for at in mixtures] for side in ("left", "right"))
    own = (*routers, *left, *right)
    missing = [name for name in target if name not in state and not name.startswith(own)]
    if missing or any(name not in target for name in state):
        other = missing[0] if missing else next(name for name in state if name not in target)
        raise ConfigError(f"the networks with and without experts differ in {other}; build both from one space")
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in target.items():
            if name not in state:
                if ".out." in name or name in left:
                    tensor.zero_()
            elif tensor.ndim == state[name].ndim + 1:
                tensor.copy_(near_copies(state[name], len(tensor), spread, stream))
            else:
                tensor.copy_(state[name])
    mixed.load_state_dict(target)
