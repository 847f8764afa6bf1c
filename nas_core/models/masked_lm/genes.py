"""The genes that a masked language model has, and what their options may be.

There are two families: RoBERTa's, of :mod:`nas_core.space.masked_lm`, whose layers are as wide as the network and whose
heads have one size; and BERT's, of :mod:`nas_core.space.bert`, whose heads divide the width of their layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from nas_core.errors import SpaceError
from nas_core.models.genes import StackGenes
from nas_core.models.masked_lm.subnet import MaskedLMConfig
from nas_core.space import Option, SearchSpace
from nas_core.space.bert import OUTER, RATIO, ffn_width

_CONSTANT = ("head_dim", "sequence_length")
GENES = StackGenes(
    "a masked language model", ("layers", "embed_dim", "ffn_dim", "heads", *_CONSTANT), _CONSTANT, place="encoder"
)
"""Those that each architecture of RoBERTa's family has."""
BERT_GENES = StackGenes(
    "a BERT encoder", ("layers", "hidden_dim", "heads", "sequence_length"), ("sequence_length", OUTER), place="encoder"
)
"""Those that each architecture of BERT's family has."""


def check_masked_lm_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a masked language model, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive integer, one that is built once has several options, or a
            kind of attention is unknown or cannot stand in an encoder.
    """
    if GENES.has(space, "hidden_dim"):
        check_bert_space(space)
        return
    for gene in GENES.names:
        GENES.check_gene(space, gene)
    _check_attention(space)


def check_bert_space(space: SearchSpace) -> None:
    """The same for BERT's family.

    Raises:
        SpaceError: as of :func:`check_masked_lm_space`; or feed-forward layers have no width or two, layers of unequal
            width have nothing between them, or heads cannot share the width of a layer.
    """
    genes = BERT_GENES
    for gene in genes.names:
        genes.check_gene(space, gene)
    found = [gene for gene in ("ffn_dim", RATIO) if genes.has(space, gene)]
    if len(found) != 1:
        raise SpaceError(f"space {space.name!r} has {' and '.join(found) or 'no ffn_dim'}; expected ffn_dim or {RATIO}")
    (genes.check_ratio if found[0] == RATIO else genes.check_gene)(space, found[0])
    if genes.has(space, OUTER):
        genes.check_gene(space, OUTER)
    elif any(choice.name == "hidden_dim" and choice.per for choice in space.choices):
        raise SpaceError(
            f"space {space.name!r} has a hidden_dim for each layer and no {OUTER}, the width between layers; add it"
        )
    for widths, heads in zip(genes.per_layer(space, "hidden_dim"), genes.per_layer(space, "heads"), strict=True):
        if wrong := next(((w, h) for w in widths for h in heads if int(w) % int(h)), None):
            raise SpaceError(
                f"space {space.name!r} has hidden_dim = {wrong[0]}, which {wrong[1]} heads cannot share; expected a"
                " multiple of each number of heads"
            )
    _check_attention(space)


def _check_attention(space: SearchSpace) -> None:
    for name in GENES.wrong_attention(space):
        raise SpaceError(f"space {space.name!r} has attention = {name!r}; expected one of {GENES.known_attention()}")


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    """The largest feed-forward width and the largest width of queries of each layer."""
    widths = widest_hidden(space)
    if not widths:
        return GENES.widest_layers(space)
    if BERT_GENES.has(space, "ffn_dim"):
        return [(max(int(option) for option in row), width) for row, width in _with(space, "ffn_dim", widths)]
    rows = _with(space, RATIO, widths)
    return [(ffn_width(max(float(option) for option in row), width), width) for row, width in rows]


def _with(space: SearchSpace, gene: str, widths: list[int]) -> Iterator[tuple[tuple[Option, ...], int]]:
    return zip(BERT_GENES.per_layer(space, gene), widths, strict=True)


def widest_hidden(space: SearchSpace) -> list[int]:
    """The largest width of each layer in a space of BERT's family; none in one of RoBERTa's, where it is the network's
    own."""
    if not BERT_GENES.has(space, "hidden_dim"):
        return []
    return [max(int(option) for option in row) for row in BERT_GENES.per_layer(space, "hidden_dim")]


def length_limit(space: SearchSpace, config: MaskedLMConfig) -> int | None:
    """The longest sequence that attention of the space's networks can read; None: any length."""
    return config.linear_length if GENES.bounded(space) else None
