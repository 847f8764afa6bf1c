"""The genes that a language model has, and what their options may be."""

from __future__ import annotations

from nas_core.models.genes import StackGenes
from nas_core.space import SearchSpace

_CONSTANT = ("head_dim", "context_length")
GENES = StackGenes(
    "a language model", ("layers", "embed_dim", "heads", "ffn_dim", *_CONSTANT), _CONSTANT, place="decoder"
)
"""Those that each architecture has."""


def check_language_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a language model, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive integer, or one that is built once has several options.
        UnknownChoiceError: a kind of attention that does not exist, or cannot stand in a decoder.
    """
    for gene in GENES.names:
        GENES.check_gene(space, gene)
    GENES.check_attention(space)
