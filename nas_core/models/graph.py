"""Networks of one stack of layers as graphs for NN-Former: a chain with one node for each sublayer.

A sublayer's residual sum and normalisation belong to its node, as in :mod:`nas_core.models.translation.graph`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nas_core.errors import ArchitectureError
from nas_core.graph.graph import Graph
from nas_core.layers.attention.kinds import KINDS, AttentionKind
from nas_core.models.genes import StackGenes
from nas_core.space import SearchSpace


class ChainGraphs:
    """The graphs of one kind of network.

    Args:
        genes: those of its spaces.
        first: names of the first operation indices, softmax attention's among them; those of further kinds of attention
            stand behind them.
        scales: by what each column of the graphs' ``attributes`` is divided.
    """

    def __init__(self, genes: StackGenes, first: tuple[str, ...], scales: tuple[float, ...]) -> None:
        self._genes, self._first, self._scales = genes, first, scales

    def operations(self) -> tuple[str, ...]:
        """Names of the operation indices, from 0."""
        place = self._genes.place
        own = [kind.operation(place) for _, kind in KINDS.items() if place in kind.places]
        return tuple(dict.fromkeys((*self._first, *own)))

    def operations_of(self, space: SearchSpace) -> int:
        """Count the operation indices that graphs of a space may have: those before the last one that it chooses."""
        names, place = self.operations(), self._genes.place
        chosen = {KINDS.get(kind).operation(place) for layer in self._genes.attention_options(space) for kind in layer}
        return 1 + max(names.index(name) for name in (*self._first, *chosen))

    def attention(self, name: str) -> tuple[AttentionKind, str]:
        """The kind of attention of a layer, and the operation of its node.

        Raises:
            ArchitectureError: no such kind, or it cannot stand there.
        """
        known = self._genes.known_attention()
        if name not in known:
            raise ArchitectureError(f"an attention is {name!r}; expected one of {known}")
        kind = KINDS.get(name)
        return kind, kind.operation(self._genes.place)

    def chain(self, nodes: Sequence[tuple[str, tuple[int, ...]]]) -> Graph:
        """The graph of nodes, each with its operation and its numbers, in the order in which they run."""
        names = self.operations()
        ops = [names.index(operation) for operation, _ in nodes]
        edges = [(node, node + 1) for node in range(len(nodes) - 1)]
        return Graph(ops, edges, attributes=np.array([sizes for _, sizes in nodes]) / self._scales)
