"""Example of a graph reader: chains of layers, given as lists of layer names."""

from __future__ import annotations

from nas_core.errors import unknown_choice
from nas_core.graph import Graph, GraphError
from nas_core.predictor import Reader

LAYERS = ("input", "conv", "pool", "dense")


def chain_graph(layers: list[str]) -> Graph:
    """Return a graph with one node per layer; the attribute of a node is its distance from the input."""
    if not isinstance(layers, list) or not layers:
        raise GraphError(f"layers are {layers!r}; expected a list of names such as ['conv', 'dense']")
    for layer in layers:
        if layer not in LAYERS[1:]:
            raise unknown_choice("layer of a chain", layer, LAYERS[1:])
    names = ["input", *layers]
    return Graph(
        ops=[LAYERS.index(name) for name in names],
        edges=[(index, index + 1) for index in range(len(layers))],
        attributes=[[index / 20] for index in range(len(names))],
    )


CHAINS = Reader("chains", chain_graph, LAYERS, ("depth",))
"""Offered as ``chains = "package.module:CHAINS"`` in the entry-point group ``nas_ext.graph_readers``."""
