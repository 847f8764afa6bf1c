"""Parameters and FLOPs of a language architecture, by formula.

Counts leave out embeddings, stored positions and the output projection unless a vocabulary is given. FLOPs are two per
multiply-accumulate of matrix products, for one sequence, all positions at once.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.space import Architecture
from nas_core.space.stack import transformer_layers


def parameters(architecture: Architecture, vocab: int = 0, tied_output: bool = True, final_norm: bool = False) -> int:
    """Parameters of the static network, counted without building it; embeddings only where a vocabulary is given.

    Raises:
        ArchitectureError: a gene of language models is missing.
    """
    width = architecture.number("embed_dim")
    total = vocab * width * (1 if tied_output else 2) + 2 * width * final_norm
    for layer in transformer_layers(architecture):
        total += 4 * width * layer.qkv_dim + 3 * layer.qkv_dim + width
        total += 2 * width * layer.ffn_dim + layer.ffn_dim + width + 4 * width
    return total


def params_m(architecture: Architecture) -> float:
    """Millions of parameters without embeddings and output projection."""
    return parameters(architecture) / 1e6


def flops(architecture: Architecture, length: int | None = None, vocab: int = 0) -> int:
    """FLOPs of one sequence of so many tokens, by default the longest, ``context_length``; the output projection of all
    positions only where a vocabulary is given.

    Raises:
        ArchitectureError: a gene of language models is missing. UnknownChoiceError: no such kind of attention.
    """
    tokens = architecture.number("context_length") if length is None else length
    width = architecture.number("embed_dim")
    macs = tokens * width * vocab
    for layer in transformer_layers(architecture):
        macs += tokens * (4 * layer.qkv_dim * width + 2 * width * layer.ffn_dim)
        macs += KINDS.get(layer.attention).macs(tokens, tokens, layer.qkv_dim, layer.heads, causal=True)
    return 2 * macs


def flops_g(architecture: Architecture) -> float:
    """Billions of FLOPs of the longest sequence, without the output projection."""
    return flops(architecture) / 1e9
