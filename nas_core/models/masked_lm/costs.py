"""Parameters and FLOPs of a masked language model, by formula.

Counts leave out tables (tokens, positions, the bias of each predicted token) unless a vocabulary is given. FLOPs are
two per multiply-accumulate of matrix products, for one sequence of the architecture's ``sequence_length`` tokens.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.models.masked_lm.subnet import MaskedLMConfig
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, layer_widths, network_width


def parameters(architecture: Architecture, vocabulary: int = 0, config: MaskedLMConfig | None = None) -> int:
    """Parameters of the static network, counted without building it; tables only where a vocabulary is given.

    Args:
        config: settings that change what there is; the default is RoBERTa's.

    Raises:
        ArchitectureError: a gene of masked language models is missing.
    """
    config = config or MaskedLMConfig()
    width = network_width(architecture)
    norms = 1 + config.embedding_norm + config.norm_first
    total = width * width + width + norms * 2 * width
    total += sum(into * out + out for into, out in joint_sizes(architecture))
    for own, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        total += 4 * own * layer.qkv_dim + 3 * layer.qkv_dim + own
        total += 2 * own * layer.ffn_dim + layer.ffn_dim + own + 4 * own
    for head in config.classification_heads:
        inner = min(head.inner, width)
        total += width * inner + inner + inner * head.classes + head.classes
    if not vocabulary:
        return total
    stored = config.stored_positions or architecture.number("sequence_length")
    positions = stored * width if config.positions == "learned" else 0
    return total + vocabulary * width * (1 if config.share_embeddings else 2) + positions + vocabulary


def params_m(architecture: Architecture) -> float:
    """Millions of parameters without tables of tokens and positions."""
    return parameters(architecture) / 1e6


def flops(architecture: Architecture, length: int = 0, vocabulary: int = 0) -> int:
    """FLOPs of one sequence; the projection to tokens only where a vocabulary is given.

    Args:
        length: tokens; 0: the architecture's ``sequence_length``.

    Raises:
        ArchitectureError: a gene of masked language models is missing. UnknownChoiceError: no such kind of attention.
    """
    tokens = length or architecture.number("sequence_length")
    width = network_width(architecture)
    macs = tokens * (width * width + width * vocabulary)
    macs += tokens * sum(into * out for into, out in joint_sizes(architecture))
    for own, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        macs += tokens * (4 * own * layer.qkv_dim + 2 * own * layer.ffn_dim)
        macs += KINDS.get(layer.attention).macs(tokens, tokens, layer.qkv_dim, layer.heads)
    return 2 * macs


def flops_g(architecture: Architecture) -> float:
    """Billions of FLOPs, without the projection to tokens."""
    return flops(architecture) / 1e9
