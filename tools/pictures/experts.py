"""The picture ``experts``: one router, two architectures, and the one matrix that is left of the experts for each."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.pictures.style import GREY, figure
from tools.pictures.toy_conflict import COLUMNS, SIZES, learned

TITLE = "A neuron-wise router mixes two experts into one matrix for each architecture"


def draw() -> Figure:
    """For each architecture a row: routing weights, the experts' rows that it uses, their mixture."""
    found = learned("neuron")
    made, rows = figure(4.1, 2, 4, gridspec_kw={"width_ratios": [2, 6, 6, 6]})
    tall = SIZES["large"]
    for axes, (name, used) in zip(rows, SIZES.items(), strict=True):
        coefficients = found.coefficients[name].numpy()
        _cells(axes[0], coefficients, 2, tall, "Greys", (0, 1))
        for column, expert in zip(axes[1:3], found.experts.numpy(), strict=True):
            _cells(column, expert, COLUMNS, tall, "PuOr", (-2.5, 2.5), used)
        _cells(axes[3], found.mixed[name].numpy(), COLUMNS, tall, "PuOr", (-2.5, 2.5))
        axes[0].set_ylabel(f"{name}\nnetwork")
    for axes, title in zip(rows[0], ("routing\nweights", "expert 1", "expert 2", "what is\nextracted"), strict=True):
        axes.set_title(title, fontsize=11)
    return made


def _cells(
    axes: Axes, values: np.ndarray, columns: int, tall: int, shades: str, limits: tuple[float, float], used: int = 0
) -> None:
    """A matrix as cells; rows from ``used`` on are faint."""
    shown = used or len(values)
    options = {"cmap": shades, "vmin": limits[0], "vmax": limits[1], "edgecolors": GREY, "linewidth": 0.4}
    axes.pcolormesh(np.arange(columns + 1), np.arange(shown + 1), values[:shown], **options)
    if shown < len(values):
        below = np.arange(shown, len(values) + 1)
        axes.pcolormesh(np.arange(columns + 1), below, values[shown:], alpha=0.15, **options)
    axes.set(xlim=(0, columns), ylim=(tall, 0), xticks=[], yticks=[], aspect="equal")
    for spine in axes.spines.values():
        spine.set_visible(False)
