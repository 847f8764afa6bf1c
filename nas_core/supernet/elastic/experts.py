"""Initialisation of experts from a trained network."""

from __future__ import annotations

import torch
from torch import nn

from nas_core.layers.mos import SPREAD, MoSLinear, near_copies


def copy_into_experts(plain: nn.Module, mixed: nn.Module, spread: float = SPREAD, seed: int = 0) -> None:
    """Copy the weights of ``plain`` into ``mixed``, the same network with experts.

    Experts are the trained weights plus noise of relative size ``spread``. The last layer of routers is 0, so that the
    noise cancels out.
    """
    # The noise gives routers a gradient. Left factors of low-rank experts are zero.
    state, target = plain.state_dict(), mixed.state_dict()
    left_factors = [f"{at}.left" for at, layer in mixed.named_modules() if isinstance(layer, MoSLinear) and layer.rank]
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in target.items():
            if name not in state:
                if ".out." in name or name in left_factors:
                    tensor.zero_()
            elif tensor.ndim == state[name].ndim + 1:
                tensor.copy_(near_copies(state[name], len(tensor), spread, stream))
            else:
                tensor.copy_(state[name])
    mixed.load_state_dict(target)
