"""How alike the experts of a network are, as a number with a gradient: a loss that keeps them apart.

Shapes: M experts, O rows, I columns.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.modes import without_autocast
from nas_core.layers.mos import MoSLinear


def expert_layers(network: nn.Module) -> list[MoSLinear]:
    """The linear layers of a network that have several experts.

    Raises:
        ConfigError: there are none.
    """
    found = [module for module in network.modules() if isinstance(module, MoSLinear) and len(module.bias) > 1]
    if not found:
        raise ConfigError(
            "the network has no layers of several experts to be kept apart; give --mos layer or neuron, and"
            " --mos-experts 2 or more"
        )
    return found


def check_apart(weight: float, network: nn.Module) -> None:
    """Check the weight of :func:`experts_alike` in a training's loss; 0 is none.

    Raises:
        ConfigError: it is below 0, or no number, or the network has no several experts.
    """
    if not 0 <= weight < float("inf"):
        raise ConfigError(f"--mos-apart is {weight}; expected a weight above 0, such as 0.1, or 0 for none")
    if weight:
        expert_layers(network)


def experts_alike(network: nn.Module) -> Tensor:
    """The mean over a network's layers of :func:`rows_alike` of their experts: from 0, where every row is orthogonal
    to those of the other experts, to 1, where experts are equal up to a factor. Biases do not count.

    It is the penalty of orthogonality of Bansal et al. 2018, of cosines instead of products. With two experts, those
    of the differences from the experts' mean are always -1; so the experts themselves are compared. Equal experts
    have no gradient of it: it drives apart what has begun to part.

    Raises:
        ConfigError: no layer has several experts.
    """
    return torch.stack([rows_alike(layer.experts()) for layer in expert_layers(network)]).mean()


def rows_alike(experts: Tensor) -> Tensor:
    """The mean squared cosine between the same row of two experts, over rows and pairs of experts ``(M, O, I)``; in
    float32 for halves as well."""
    with without_autocast(experts):
        rows = experts.to(torch.promote_types(experts.dtype, torch.float32)).transpose(0, 1)
        products = rows @ rows.mT
        norms = products.diagonal(dim1=1, dim2=2).clamp(min=torch.finfo(products.dtype).tiny ** 0.5)
        one, other = torch.triu_indices(len(experts), len(experts), 1, device=experts.device)
        return (products[:, one, other].square() / (norms[:, one] * norms[:, other])).mean()


def naive_alike(experts: Tensor) -> Tensor:
    """The same by its definition, in float32: the reference of :func:`rows_alike`."""
    rows = experts.float()
    pairs = [(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]
    return torch.stack([torch.cosine_similarity(a, b, dim=1).square().mean() for a, b in pairs]).mean()
