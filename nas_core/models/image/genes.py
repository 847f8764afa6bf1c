"""The genes that an image network has, and the largest options of each layer."""

from __future__ import annotations

from nas_core.models.genes import StackGenes
from nas_core.space import SearchSpace

_CONSTANT = ("image_size", "patch_size", "head_dim", "relative_clip")
GENES = StackGenes("an image network", ("layers", "embed_dim", "heads", *_CONSTANT), _CONSTANT, place="image")
"""Those that each image architecture has, beside ``ffn_dim`` or ``mlp_ratio``."""


def check_image_space(space: SearchSpace) -> None:
    """Check that the space has every gene of an image network, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive number, or one that is built once has several options.
        UnknownChoiceError: a kind of attention that does not exist, or cannot read images.
    """
    if GENES.has(space, "ffn_dim"):
        GENES.check_gene(space, "ffn_dim")
    else:
        GENES.check_ratio(space, "mlp_ratio")
    for gene in GENES.names:
        GENES.check_gene(space, gene, 0 if gene == "relative_clip" else 1)
    GENES.check_attention(space)


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    """The largest feed-forward width and the largest width of queries of each layer."""
    if GENES.has(space, "ffn_dim"):
        return GENES.widest_layers(space)
    width = max(int(option) for option in GENES.options(space, "embed_dim")[0])
    ffn = [round(max(float(option) for option in row) * width) for row in GENES.per_layer(space, "mlp_ratio")]
    return list(zip(ffn, GENES.widest_queries(space), strict=True))


def attention_options(space: SearchSpace) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use; softmax where the space does not choose."""
    return GENES.attention_options(space)
