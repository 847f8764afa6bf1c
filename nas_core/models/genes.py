"""The genes of networks of one stack of layers: what a space must have, and which options each layer has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nas_core.errors import SpaceError, unknown_choice
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.kinds import KINDS, placed
from nas_core.layers.transformer import AttentionConfig
from nas_core.space import Option, SearchSpace


@dataclass(frozen=True)
class StackGenes:
    """The genes of one kind of network, read from its spaces."""

    network: str
    """What it is called in messages, with its article: "a language model"."""
    names: tuple[str, ...]
    """Those that each architecture has."""
    constant: tuple[str, ...]
    """Those that are built once: a space has one option."""
    place: str
    """Where its attention stands, one of :data:`nas_core.layers.attention.PLACES`."""

    def check_gene(self, space: SearchSpace, gene: str, least: int = 1) -> None:
        """Check that the space has a gene whose options are integers from ``least`` on, and one of them if it is built
        once.

        Raises:
            SpaceError: it does not.
        """
        expected = f"an integer above {least - 1}" if least else "an integer, 0 or above"
        self._check(space, gene, lambda option: isinstance(option, int) and option >= least, expected)

    def check_ratio(self, space: SearchSpace, gene: str) -> None:
        """Do what :meth:`check_gene` does for a gene whose options are any numbers above 0.

        Raises:
            SpaceError: it does not fit.
        """
        self._check(space, gene, lambda option: isinstance(option, int | float) and option > 0, "a number above 0")

    def _check(self, space: SearchSpace, gene: str, fits: Callable[[Option], bool], expected: str) -> None:
        options = {option for row in self.options(space, gene) for option in row}
        for option in options:
            if not fits(option):
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected {expected}")
        if gene in self.constant and len(options) > 1:
            raise SpaceError(f"space {space.name!r} searches {gene} {sorted(options, key=float)}; expected one value")

    def check_attention(self, space: SearchSpace) -> None:
        """Check the kinds of attention among which layers choose.

        Raises:
            UnknownChoiceError: one does not exist, or cannot stand there.
        """
        for name in self.wrong_attention(space):
            raise unknown_choice(f"attention in space {space.name!r}", name, self.known_attention())

    def wrong_attention(self, space: SearchSpace) -> set[str]:
        """Kinds of attention of the space that do not exist, or cannot stand there."""
        return {name for row in self.attention_options(space) for name in row} - {*self.known_attention()}

    def known_attention(self) -> list[str]:
        """The kinds of attention that may stand there."""
        return [name for name, kind in KINDS.items() if self.place in kind.places]

    def attention_options(self, space: SearchSpace) -> list[tuple[str, ...]]:
        """The kinds of attention that each layer may use; softmax where the space does not choose."""
        if not self.has(space, "attention"):
            return [("softmax",)] * self._depth(space)
        return [tuple(str(option) for option in row) for row in self.per_layer(space, "attention")]

    def layer_attention(self, space: SearchSpace, linear: LinearAttention, length: int | None) -> list[AttentionConfig]:
        """The kinds of attention of each layer with their settings: those of linear attention, and the length for which
        a kind that is bounded is made, None for each sequence's own."""
        return [
            AttentionConfig(tuple(placed(linear if n == linear.name else n, self.place, length) for n in names))
            for names in self.attention_options(space)
        ]

    def bounded(self, space: SearchSpace) -> bool:
        """Whether a layer may have attention that is made for a longest sequence."""
        return any(KINDS.get(kind).is_bounded for kinds in self.attention_options(space) for kind in kinds)

    def widest_layers(self, space: SearchSpace) -> list[tuple[int, int]]:
        """The largest feed-forward width and the largest width of queries of each layer."""
        ffn = [max(int(option) for option in row) for row in self.per_layer(space, "ffn_dim")]
        return list(zip(ffn, self.widest_queries(space), strict=True))

    def widest_queries(self, space: SearchSpace) -> list[int]:
        """The largest width of queries of each layer."""
        head_dim = int(self.options(space, "head_dim")[0][0])
        return [max(int(option) for option in row) * head_dim for row in self.per_layer(space, "heads")]

    def per_layer(self, space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
        """The options that each layer has."""
        rows, depth = self.options(space, gene), self._depth(space)
        return rows if len(rows) == depth else [rows[0]] * depth

    def _depth(self, space: SearchSpace) -> int:
        return max(int(option) for option in self.options(space, "layers")[0])

    def options(self, space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
        """The options of a gene: one row, or one for each layer.

        Raises:
            SpaceError: the space does not have the gene.
        """
        if not self.has(space, gene):
            raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which {self.network} needs")
        return [(space.fixed[gene],)] if gene in space.fixed else space.choice(gene).options

    @staticmethod
    def has(space: SearchSpace, gene: str) -> bool:
        """Whether the space has the gene, searched or fixed."""
        return gene in space.fixed or gene in [choice.name for choice in space.choices]
