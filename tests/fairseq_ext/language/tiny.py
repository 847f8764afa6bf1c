"""A space of tiny language models and one of its networks."""

from __future__ import annotations

from nas_core.space import Architecture, SearchSpace
from nas_core.space.language import language_space

CONTEXT = 26
SPACE = language_space(
    "tiny-language",
    layers=(3, 2),
    embed_dims=(16, 12),
    ffn_dims=(32, 24, 16),
    heads=(4, 2),
    head_dim=4,
    context_length=CONTEXT,
    attention=("softmax", "local", "linear"),
)


def subnet(space: SearchSpace = SPACE) -> Architecture:
    """Unlike the smallest and the largest: narrow, with a layer of each kind of attention."""
    genes = {"layers": 3, "embed_dim": 12, "ffn_dim": [16, 32, 24], "heads": [2, 4, 2]}
    return space.validate(Architecture({**space.fixed, **genes, "attention": ["linear", "softmax", "local"]}))
