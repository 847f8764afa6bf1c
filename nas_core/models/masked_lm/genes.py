"""The genes that a masked language model has, and what their options may be."""

from __future__ import annotations

from nas_core.errors import SpaceError
from nas_core.models.genes import StackGenes
from nas_core.models.masked_lm.subnet import MaskedLMConfig
from nas_core.space import SearchSpace

__all__ = ["GENES", "check_masked_lm_space", "length_limit"]

_CONSTANT = ("head_dim", "sequence_length")
GENES = StackGenes(
    "a masked language model", ("layers", "embed_dim", "ffn_dim", "heads", *_CONSTANT), _CONSTANT, place="encoder"
)
"""Those that each architecture has."""


def check_masked_lm_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a masked language model, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive integer, one that is built once has several options, or a
            kind of attention is unknown or cannot stand in an encoder.
    """
    for gene in GENES.names:
        GENES.check_gene(space, gene)
    for name in GENES.wrong_attention(space):
        raise SpaceError(f"space {space.name!r} has attention = {name!r}; expected one of {GENES.known_attention()}")


def length_limit(space: SearchSpace, config: MaskedLMConfig) -> int | None:
    """The longest sequence that attention of the space's networks can read; None: any length."""
    return config.linear_length if GENES.bounded(space) else None
