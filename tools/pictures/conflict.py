"""The picture ``conflict``: training two subnets that want different weights, with and without experts.

The task is made up. The large subnet shall compute one matrix, the small one another: of the four rows that both have,
three differ and one is the same. Both are trained in every update, by the project's own elastic layers, mixtures and
routers. The picture ``experts`` shows what is learned.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nas_core.layers import ROUTERS, ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.weights import Affine
from tools.pictures.style import BLUE, GREEN, ORANGE, figure

__all__ = ["COLUMNS", "SIZES", "TITLE", "Learned", "draw", "learned"]

TITLE = "Loss of two subnets that want different things of the weights they share"
KINDS = {
    "none": ("one shared matrix", BLUE),
    "layer": ("layer-wise experts", ORANGE),
    "neuron": ("neuron-wise experts", GREEN),
}
SEEDS = range(4)
COLUMNS = 6
SIZES = {"large": 8, "small": 4}
"""Rows of the two subnets."""
ENCODINGS = {"large": torch.tensor([1.0]), "small": torch.tensor([0.0])}
UPDATES = 120


def draw() -> Figure:
    """Loss over updates for each kind of mixture: thin the runs from four starting weights, thick their mean."""
    made, axes = figure(3.8)
    for kind, (name, colour) in KINDS.items():
        runs = [learned(kind, seed).losses for seed in SEEDS]
        for run in runs:
            axes.plot(run, color=colour, linewidth=0.8, alpha=0.45)
        axes.plot(np.mean(runs, axis=0), color=colour, linewidth=2.5, label=name)
    axes.set(xlabel="update", ylabel="loss of both subnets", ylim=(0, 1.3), xlim=(0, UPDATES))
    axes.grid(axis="y")
    axes.legend(loc="upper right")
    return made


class Learned(NamedTuple):
    """What training left."""

    losses: list[float]
    """The mean of both subnets' losses after each update."""
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
