"""The picture ``sandwich``: the subnets that 40 updates train, by both ways to sample them."""

from __future__ import annotations

from matplotlib.figure import Figure

from nas_core.models import params_m
from nas_core.space import get_space
from nas_core.supernet import draw as drawn
from nas_core.supernet import sandwich
from tools.pictures.style import BLUE, GREEN, ORANGE, figure

TITLE = "The subnets trained by 40 updates, with SPOS and with the sandwich"
UPDATES = range(1, 41)


def draw() -> Figure:
    """Sizes of the subnets over updates of the space ``hat_small``."""
    space = get_space("hat_small")
    made, (above, below) = figure(4.6, 2, 1, sharex=True, sharey=True)
    random = [drawn(space, update) for update in UPDATES]
    looks = {"largest": (BLUE, "^"), "random": (ORANGE, "o"), "smallest": (GREEN, "v")}
    above.scatter(UPDATES, [params_m(one) for one in random], s=26, color=ORANGE)
    steps = [sandwich(space, one) for one in random]
    for name, (colour, marker) in looks.items():
        sizes = [params_m(step[name]) for step in steps]
        below.scatter(UPDATES, sizes, s=26, color=colour, marker=marker, label=name)
    above.set_title("SPOS: one random subnet an update")
    below.set_title("sandwich: three subnets an update")
    below.set(xlabel="update", ylim=(0, None))
    below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=3, handletextpad=0.1, columnspacing=1)
    made.supylabel("parameters (millions)", fontsize=12)
    return made
