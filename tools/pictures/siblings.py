"""The picture ``siblings``: a cell of NAS-Bench-201 and what each of NN-Former's four heads may look at in it."""

from __future__ import annotations

from matplotlib.figure import Figure

from nas_core.graph import Graphs
from nas_core.predictor import Batch, NNFormerConfig, Topology
from tools.pictures.cell import GRAPH, draw_cell
from tools.pictures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, figure, matrix

TITLE = "A cell as a graph, and the masks of NN-Former's four heads"
HEADS = {
    "head 1: children": BLUE,
    "head 2: parents": ORANGE,
    "head 3: share a parent": GREEN,
    "head 4: share a child": PURPLE,
}


def draw() -> Figure:
    """The graph above, four masks below; a filled cell: the row's node looks at the column's."""
    masks = Topology.of(Batch.of(Graphs.of([GRAPH])), NNFormerConfig.accuracy(readout="sum")).masks
    assert masks is not None
    made, axes = figure(7.4, 3, 2, height_ratios=[0.85, 1, 1])
    for one in axes[0]:
        one.remove()
    draw_cell(made.add_subplot(axes[0, 0].get_gridspec()[0, :]), [GREY] * len(GRAPH.ops))
    for one, mask, (title, colour) in zip(axes[1:].flat, masks[0].float().numpy(), HEADS.items(), strict=True):
        matrix(one, mask, colour, title, largest=1.3)
        one.title.set_color(colour)
        centres = [node + 0.5 for node in range(len(mask))]
        one.set_xticks(centres, range(len(mask)))
        one.set_yticks(centres, range(len(mask)))
        one.tick_params(length=0)
    return made
