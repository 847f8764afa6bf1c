"""The picture ``crossover``: multiplications of each kind of attention, as the kinds count them."""

from __future__ import annotations

from matplotlib.figure import Figure

from nas_core.layers.attention import KINDS
from tools.pictures.style import GREY, figure, kind_colour

TITLE = "Multiplications per position of each kind of attention, over the length"
WIDTH, HEADS = 512, 8
LENGTHS = tuple(2**power for power in range(4, 14))


def draw() -> Figure:
    """Lines over the length, both axes logarithmic, and where linear and softmax meet."""
    made, axes = figure(3.9)
    for name in ("softmax", "linear", "local"):
        macs = [KINDS.get(name).macs(n, n, WIDTH, HEADS) / n / 1e3 for n in LENGTHS]
        axes.plot(LENGTHS, macs, color=kind_colour(name), label=name)
    meet = next(n for n in range(1, LENGTHS[-1]) if _cheaper(n))
    height = KINDS.get("softmax").macs(meet, meet, WIDTH, HEADS) / meet / 1e3
    axes.plot([meet, meet], [10, height], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2)
    axes.text(meet * 1.1, 11, f"{meet} positions", fontsize=11)
    axes.set(xscale="log", yscale="log", xlabel="positions", ylabel="thousand products\nper position", ylim=(10, None))
    axes.set_xticks([16, 64, 256, 1024, 4096], ["16", "64", "256", "1024", "4096"])
    axes.set_yticks([10, 100, 1000, 10000], ["10", "100", "1000", "10000"])
    axes.minorticks_off()
    axes.grid()
    axes.legend(loc="upper left")
    return made


def _cheaper(n: int) -> bool:
    """Whether linear attention needs no more than softmax at that length."""
    return KINDS.get("linear").macs(n, n, WIDTH, HEADS) <= KINDS.get("softmax").macs(n, n, WIDTH, HEADS)
