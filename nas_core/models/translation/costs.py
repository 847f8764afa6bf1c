"""Formulas for parameters, FLOPs and memory of translation architectures.

Embeddings and output projection count only if vocabulary sizes are given, as in HAT. A multiply-accumulate is two
FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass

from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.layers.positions import ROWS
from nas_core.models.memory import layer_numbers, state_numbers
from nas_core.models.translation.genes import cross_reads, decoder_layers, encoder_layers
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture


@dataclass(frozen=True)
class Lengths:
    """Sentence lengths for FLOPs, in tokens."""

    source: int = 30
    """Source tokens (HAT: 30 for WMT, 23 for IWSLT)."""
    target: int = 30
    """Target tokens."""


def parameters(
    architecture: Architecture,
    source_vocab: int = 0,
    target_vocab: int = 0,
    share_all_embeddings: bool = False,
    share_decoder_embeddings: bool = False,
    norm_first: bool = False,
) -> int:
    e, d = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
    total = 2 * (e + d) if norm_first else 0
    for layer in encoder_layers(architecture):
        total += _attention(layer.qkv_dim, e, e) + _feed_forward(e, layer.ffn_dim) + 2 * 2 * e
    for decoder_layer in decoder_layers(architecture):
        total += _attention(decoder_layer.qkv_dim, d, d) + _attention(decoder_layer.cross_qkv_dim, d, e)
        total += _feed_forward(d, decoder_layer.ffn_dim) + 3 * 2 * d
    if share_all_embeddings:
        return total + source_vocab * max(e, d)
    return total + source_vocab * e + target_vocab * d * (1 if share_decoder_embeddings else 2)


def _attention(q: int, width: int, memory: int) -> int:
    return (width * q + q) + 2 * (memory * q + q) + (q * width + width)


def _feed_forward(width: int, ffn: int) -> int:
    return width * ffn + ffn + ffn * width + width


def flops(architecture: Architecture, lengths: Lengths | None = None, target_vocab: int = 0) -> int:
    lengths = lengths or Lengths()
    s, t = lengths.source, lengths.target
    e, d = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
    macs = t * d * target_vocab
    for layer in encoder_layers(architecture):
        macs += s * (4 * layer.qkv_dim * e + 2 * e * layer.ffn_dim)
        macs += ATTENTION_KINDS.get(layer.attention).macs(s, s, layer.qkv_dim, layer.heads)
    for decoder_layer in decoder_layers(architecture):
        read = s * decoder_layer.reads
        macs += t * (4 * decoder_layer.qkv_dim * d + 2 * d * decoder_layer.ffn_dim)
        macs += ATTENTION_KINDS.get(decoder_layer.attention).macs(
            t, t, decoder_layer.qkv_dim, decoder_layer.heads, causal=True
        )
        macs += t * 2 * decoder_layer.cross_qkv_dim * d + read * 2 * decoder_layer.cross_qkv_dim * e
        macs += ATTENTION_KINDS.get(decoder_layer.cross_attention).macs(
            t, read, decoder_layer.cross_qkv_dim, decoder_layer.cross_heads
        )
    return 2 * macs


def weight_numbers(architecture: Architecture, config: TranslationWorkloadConfig) -> int:
    source, target = ROWS, ROWS
    if config.source_length > source:
        source = max(config.source_length, 2 * source)
    while config.target_length > target:  # it grows step by step
        target *= 2
    tables = source * architecture.number("encoder.embed_dim") + target * architecture.number("decoder.embed_dim")
    return tables + parameters(architecture, config.source_vocab, config.target_vocab)


def cache_numbers(architecture: Architecture, config: TranslationWorkloadConfig) -> tuple[int, int]:
    self_attention = cross_attention = 0
    for decoder_layer in decoder_layers(architecture):
        kind, cross = ATTENTION_KINDS.get(decoder_layer.attention), ATTENTION_KINDS.get(decoder_layer.cross_attention)
        self_attention += state_numbers(
            kind, decoder_layer.heads, decoder_layer.qkv_dim // decoder_layer.heads, config.target_length, config.beam
        )
        dim, source = (
            decoder_layer.cross_qkv_dim // decoder_layer.cross_heads,
            config.source_length * decoder_layer.reads,
        )
        cross_attention += state_numbers(cross, decoder_layer.cross_heads, dim, source, config.beam)
    return self_attention, cross_attention


def activation_numel(architecture: Architecture, config: TranslationWorkloadConfig) -> int:
    s, e = config.source_length, architecture.number("encoder.embed_dim")
    self_attention, cross_attention = cache_numbers(architecture, config)
    layers = [
        layer_numbers(ATTENTION_KINDS.get(layer.attention), 1, s, e, layer.qkv_dim, layer.ffn_dim, layer.heads)
        for layer in encoder_layers(architecture)
    ]
    encoding = s * e * (len(layers) + 1) + max(layers)  # all outputs, and the current layer
    memory = s * e * max(cross_reads(architecture))
    extra_memory = [
        ATTENTION_KINDS.get(decoder_layer.cross_attention).extra_memory(
            s * decoder_layer.reads, decoder_layer.cross_qkv_dim
        )
        for decoder_layer in decoder_layers(architecture)
    ]
    projecting = sum(keys_values for keys_values, _ in extra_memory) + max(
        temporaries for _, temporaries in extra_memory
    )
    starting = cross_attention // config.beam + max(cross_attention, projecting)
    # reordering holds the states of self-attention twice
    stepping = cross_attention + 2 * self_attention + config.beam * config.target_vocab
    return max(encoding, memory + starting, memory + stepping)
