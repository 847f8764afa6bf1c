"""Genes of networks with one stack of layers, and their graphs with one node per sublayer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nas_core.errors import ArchitectureError, SpaceError, unknown_choice
from nas_core.graph.graph import Graph
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.kinds import ATTENTION_KINDS, AttentionKind, resolve_kind
from nas_core.layers.transformer import AttentionConfig
from nas_core.space import SearchSpace
from nas_core.space.architecture import Option


@dataclass(frozen=True)
class StackGenes:
    """Genes of one network kind."""

    network: str
    """Name of the network in messages, with article: "a language model"."""
    names: tuple[str, ...]
    constant: tuple[str, ...]
    """Genes that have only one option in a space."""
    role: str
    """Role of its attention, one of :data:`nas_core.layers.attention.kinds.ROLES`."""

    def check_gene(self, space: SearchSpace, gene: str, minimum: int = 1) -> None:
        """Raise ``SpaceError`` unless all options are integers >= ``minimum``. Genes in ``constant`` have one."""
        expected = f"an integer above {minimum - 1}" if minimum else "an integer of at least 0"
        self._check(space, gene, lambda option: isinstance(option, int) and option >= minimum, expected)

    def check_ratio(self, space: SearchSpace, gene: str) -> None:
        """Raise ``SpaceError`` unless all options are above 0. Genes in ``constant`` need one option."""
        self._check(space, gene, lambda option: isinstance(option, int | float) and option > 0, "a number above 0")

    def _check(self, space: SearchSpace, gene: str, fits: Callable[[Option], bool], expected: str) -> None:
        options = {option for row in self.options(space, gene) for option in row}
        for option in options:
            if not fits(option):
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected {expected}")
        if gene in self.constant and len(options) > 1:
            raise SpaceError(f"space {space.name!r} has {gene} = {sorted(options, key=float)}; expected one value")

    def check_attention(self, space: SearchSpace) -> None:
        for name in self.wrong_attention(space):
            raise unknown_choice(f"attention in space {space.name!r}", name, self.known_attention())

    def wrong_attention(self, space: SearchSpace) -> set[str]:
        return {name for row in self.attention_options(space) for name in row} - {*self.known_attention()}

    def known_attention(self) -> list[str]:
        return [name for name, kind in ATTENTION_KINDS.items() if self.role in kind.roles]

    def attention_options(self, space: SearchSpace) -> list[tuple[str, ...]]:
        """Return the attention types of each layer, by default softmax."""
        if not self.has(space, "attention"):
            return [("softmax",)] * self._depth(space)
        return [tuple(str(option) for option in row) for row in self.per_layer(space, "attention")]

    def layer_attention(self, space: SearchSpace, linear: LinearAttention, length: int | None) -> list[AttentionConfig]:
        """Return the attention mechanisms of each layer.

        Args:
            linear: settings of linear attention.
            length: maximum sequence length of bounded attention, such as linear. None means each sequence's own length.
        """
        return [
            AttentionConfig(tuple(resolve_kind(linear if n == linear.name else n, self.role, length) for n in names))
            for names in self.attention_options(space)
        ]

    def bounded(self, space: SearchSpace) -> bool:
        """Return True if any attention of a space has a maximum length."""
        return any(ATTENTION_KINDS.get(kind).is_bounded for kinds in self.attention_options(space) for kind in kinds)

    def widest_layers(self, space: SearchSpace) -> list[tuple[int, int]]:
        """Return the largest feed-forward width and query width of each layer."""
        ffn = [max(int(option) for option in row) for row in self.per_layer(space, "ffn_dim")]
        return list(zip(ffn, self.widest_queries(space), strict=True))

    def widest_queries(self, space: SearchSpace) -> list[int]:
        if not self.has(space, "heads"):
            return [max(int(option) for option in self.options(space, "embed_dim")[0])] * self._depth(space)
        head_dim = int(self.options(space, "head_dim")[0][0])
        return [max(int(option) for option in row) * head_dim for row in self.per_layer(space, "heads")]

    def per_layer(self, space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
        rows, depth = self.options(space, gene), self._depth(space)
        return rows if len(rows) == depth else [rows[0]] * depth

    def _depth(self, space: SearchSpace) -> int:
        return max(int(option) for option in self.options(space, "layers")[0])

    def options(self, space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
        """Return the options of a gene: one tuple for the network, or one per layer."""
        if not self.has(space, gene):
            raise SpaceError(f"space {space.name!r} has no gene {gene!r}; {self.network} needs it")
        return [(space.fixed[gene],)] if gene in space.fixed else space.choice(gene).options

    @staticmethod
    def has(space: SearchSpace, gene: str) -> bool:
        return gene in space.fixed or gene in [choice.name for choice in space.choices]


class ChainGraphs:
    """Graphs of one network kind, whose sublayers form a chain.

    Args:
        first: names of the first operations. Other attention types follow.
        scales: divisor of each column of ``Graph.attributes``.
    """

    def __init__(self, genes: StackGenes, first: tuple[str, ...], scales: tuple[float, ...]) -> None:
        self._genes, self._first, self._scales = genes, first, scales

    def operations(self) -> tuple[str, ...]:
        """Return operation names by index."""
        role = self._genes.role
        attention = [kind.operation(role) for _, kind in ATTENTION_KINDS.items() if role in kind.roles]
        return tuple(dict.fromkeys((*self._first, *attention)))

    def attention(self, name: str) -> tuple[AttentionKind, str]:
        """Return an attention mechanism by name, and its operation name."""
        supported = self._genes.known_attention()
        if name not in supported:
            raise ArchitectureError(f"attention is {name!r}; expected one of {supported}")
        kind = ATTENTION_KINDS.get(name)
        return kind, kind.operation(self._genes.role)

    def chain(self, nodes: Sequence[tuple[str, tuple[int, ...]]]) -> Graph:
        """Return the graph of ``nodes``: pairs (operation name, attributes) in execution order."""
        names = self.operations()
        ops = [names.index(operation) for operation, _ in nodes]
        edges = [(node, node + 1) for node in range(len(nodes) - 1)]
        return Graph(ops, edges, attributes=np.array([sizes for _, sizes in nodes]) / self._scales)
