"""Formulas for parameters, FLOPs and memory of masked language models.

Embedding tables count only if a vocabulary size is given. A multiply-accumulate is two FLOPs.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.models.masked_lm.net import MaskedLMConfig
from nas_core.models.masked_lm.workload import MaskedLMWorkloadConfig, timed_config, timed_length
from nas_core.models.memory import layer_numbers
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, layer_widths, network_width


def parameters(architecture: Architecture, vocabulary: int = 0, config: MaskedLMConfig | None = None) -> int:
    """Count the parameters of the static network, without embeddings if ``vocabulary`` is 0."""
    config = config or MaskedLMConfig()
    width = network_width(architecture)
    norms = 1 + config.embedding_norm + config.norm_first
    total = width * width + width + norms * 2 * width
    total += sum(in_features * out_features + out_features for in_features, out_features in joint_sizes(architecture))
    for w, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        total += 4 * w * layer.qkv_dim + 3 * layer.qkv_dim + w
        total += 2 * w * layer.ffn_dim + layer.ffn_dim + w + 4 * w
    for head in config.classification_heads:
        inner = min(head.inner, width)
        total += width * inner + inner + inner * head.classes + head.classes
    if not vocabulary:
        return total
    stored = config.stored_positions or architecture.number("sequence_length")
    positions = stored * width if config.positions == "learned" else 0
    return total + vocabulary * width * (1 if config.share_embeddings else 2) + positions + vocabulary


def flops(architecture: Architecture, length: int = 0, vocabulary: int = 0) -> int:
    """Count FLOPs for ``length`` tokens, by default ``sequence_length``, and an output of ``vocabulary`` words."""
    tokens = length or architecture.number("sequence_length")
    width = network_width(architecture)
    macs = tokens * (width * width + width * vocabulary)
    macs += tokens * sum(in_features * out_features for in_features, out_features in joint_sizes(architecture))
    for w, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True):
        macs += tokens * (4 * w * layer.qkv_dim + 2 * w * layer.ffn_dim)
        macs += ATTENTION_KINDS.get(layer.attention).macs(tokens, tokens, layer.qkv_dim, layer.heads)
    return 2 * macs


def weight_numbers(architecture: Architecture, config: MaskedLMWorkloadConfig) -> int:
    return parameters(architecture, config.vocab, timed_config(architecture, config))


def activation_numel(architecture: Architecture, config: MaskedLMWorkloadConfig) -> int:
    width, length = network_width(architecture), timed_length(architecture, config)
    positions = config.batch * length
    layers = [
        positions * w
        + layer_numbers(
            ATTENTION_KINDS.get(layer.attention), config.batch, length, w, layer.qkv_dim, layer.ffn_dim, layer.heads
        )
        for w, layer in zip(layer_widths(architecture), encoder_layers(architecture), strict=True)
    ]
    joints = [positions * (in_features + out_features) for in_features, out_features in joint_sizes(architecture)]
    head = positions * (width if config.classes else 2 * width + config.vocab)
    return max(*layers, *joints, 3 * positions * width, head)
