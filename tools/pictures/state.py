"""The picture ``state``: how many numbers each kind of attention keeps while it decodes, counted while it does."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from nas_core.layers.attention import KINDS
from tools.pictures.style import figure, kind_colour

TITLE = "Numbers kept while decoding, by kind of attention"
STEPS, DIM = 200, 64


def draw() -> Figure:
    """The sizes of the states after each of 200 steps of one head."""
    made, axes = figure(3.6)
    for name in ("softmax", "linear", "local"):
        axes.plot(range(1, STEPS + 1), kept(name), color=kind_colour(name), label=name)
    axes.set(xlabel="positions decoded", ylabel="thousand numbers\nof one head", ylim=(0, None), xlim=(0, STEPS))
    axes.grid(axis="y")
    axes.legend(loc="upper left")
    return made


def kept(name: str) -> list[float]:
    """Thousands of numbers in the state after each step."""
    kind, state, sizes = KINDS.get(name), None, []
    position = torch.ones(1, 1, 1, DIM)
    with torch.inference_mode():
        for _ in range(STEPS):
            _, state = kind.step(position, position, position, state)
            sizes.append(sum(tensor.numel() for tensor in state.tensors()) / 1e3)
    return sizes
