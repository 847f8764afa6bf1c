"""A made-up task in which two subnets want different things of the rows they share, learned with and without experts.

The large subnet shall compute one matrix, the small one another: of the four rows that both have, three differ and one
is the same. Both are trained in every update, by the project's own elastic layers, mixtures and routers.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.layers import ROUTERS, ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.weights import Affine

__all__ = ["COLUMNS", "SIZES", "UPDATES", "Learned", "learned"]

COLUMNS = 6
SIZES = {"large": 8, "small": 4}
"""Rows of the two subnets."""
ENCODINGS = {"large": torch.tensor([1.0]), "small": torch.tensor([0.0])}
UPDATES = 120


class Learned(NamedTuple):
    """What training left."""

    losses: list[float]
    """Of each update, the mean of both subnets."""
    wanted: dict[str, Tensor]
    mixed: dict[str, Tensor]
    coefficients: dict[str, Tensor]
    """(M,) or (O, M); without experts none."""
    experts: Tensor
    """(M, O, I)"""


@cache
def learned(kind: str, seed: int = 0) -> Learned:
    """Train the layer with that kind of mixture (``none``: plain sharing) from the starting weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        wanted = {name: torch.randn(rows, COLUMNS) for name, rows in SIZES.items()}
        wanted["small"][3] = wanted["large"][3]
        torch.manual_seed(seed)
        select, parameters, experts, coefficients = _layer(kind)
        optimizer = torch.optim.Adam(parameters, 0.05)
        losses = []
        for _ in range(UPDATES):
            errors = [(select(name).weight - target).square().mean() for name, target in wanted.items()]
            loss = torch.stack(errors).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        mixed = {name: select(name).weight.clone() for name in SIZES}
        return Learned(losses, wanted, mixed, coefficients(), experts.detach())


def _layer(kind: str):
    if kind == "none":
        plain = ElasticLinear(COLUMNS, SIZES["large"])
        return (lambda name: plain.select(COLUMNS, SIZES[name])), plain.parameters(), plain.weight[None], dict
    config = MoSConfig(kind=kind, experts=2, router_hidden=16)
    layer, router = MoSLinear(COLUMNS, SIZES["large"], config), ROUTERS.get(kind)(1, config, SIZES["large"])

    def select(name: str) -> Affine:
        return layer.select(COLUMNS, SIZES[name], router(ENCODINGS[name], SIZES[name]))

    def coefficients() -> dict[str, Tensor]:
        return {name: router(ENCODINGS[name], rows).detach() for name, rows in SIZES.items()}

    return select, [*layer.parameters(), *router.parameters()], layer.weight, coefficients
