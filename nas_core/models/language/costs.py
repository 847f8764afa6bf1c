"""Formulas for parameters, FLOPs and memory of language models.

Embeddings and output projection count only if a vocabulary size is given. A multiply-accumulate is two FLOPs.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.layers.positions import ROWS
from nas_core.models.language.net import LanguageConfig
from nas_core.models.language.workload import LanguageWorkloadConfig
from nas_core.models.memory import attention_numbers, state_numbers
from nas_core.space import Architecture
from nas_core.space.stack import TransformerLayer, transformer_layers


def parameters(architecture: Architecture, vocab: int = 0, tied_output: bool = True, final_norm: bool = False) -> int:
    width = architecture.number("embed_dim")
    total = vocab * width * (1 if tied_output else 2) + 2 * width * final_norm
    for layer in transformer_layers(architecture):
        total += 4 * width * layer.qkv_dim + 3 * layer.qkv_dim + width
        total += 2 * width * layer.ffn_dim + layer.ffn_dim + width + 4 * width
    return total


def flops(architecture: Architecture, length: int | None = None, vocab: int = 0) -> int:
    """Count FLOPs for ``length`` tokens, by default ``context_length``, and an output of ``vocab`` words."""
    tokens = architecture.number("context_length") if length is None else length
    width = architecture.number("embed_dim")
    macs = tokens * width * vocab
    for layer in transformer_layers(architecture):
        macs += tokens * (4 * layer.qkv_dim * width + 2 * width * layer.ffn_dim)
        macs += ATTENTION_KINDS.get(layer.attention).macs(tokens, tokens, layer.qkv_dim, layer.heads, causal=True)
    return 2 * macs


def weight_numbers(architecture: Architecture, config: LanguageWorkloadConfig) -> int:
    rows, form = max(config.prompt_length, 2 * ROWS) if config.prompt_length > ROWS else ROWS, LanguageConfig()
    while config.prompt_length + config.new_tokens > rows:  # it grows step by step
        rows *= 2
    weights = parameters(architecture, config.vocab, form.tied_output, form.has_final_norm)
    return weights + rows * architecture.number("embed_dim")


def cache_numbers(architecture: Architecture, config: LanguageWorkloadConfig) -> int:
    length = config.prompt_length + config.new_tokens
    return sum(_state(layer, length, config.batch) for layer in transformer_layers(architecture))


def activation_numel(architecture: Architecture, config: LanguageWorkloadConfig) -> int:
    width, positions = architecture.number("embed_dim"), config.batch * config.prompt_length
    states = reading = stepping = 0  # states of earlier layers, and the peaks of a layer
    for layer in transformer_layers(architecture):
        kind, sizes = ATTENTION_KINDS.get(layer.attention), (width, layer.qkv_dim, layer.heads)
        attending = attention_numbers(kind, config.batch, config.prompt_length, *sizes, causal=True)
        state = _state(layer, config.prompt_length, config.batch)
        transforming = state + positions * (max(layer.ffn_dim, 2 * width) + 3 * width)
        reading = max(reading, states + max(attending, transforming))
        final_state = _state(layer, config.prompt_length + config.new_tokens, config.batch)
        stepping = max(stepping, final_state + attention_numbers(kind, config.batch, 1, *sizes, causal=True))
        states += state
    # states of the prompt, the cache, the last logits, and the current layer or new logits
    logits, cache = config.batch * config.vocab, cache_numbers(architecture, config)
    decoding = states + cache + max(stepping, logits) + (logits if config.new_tokens > 1 else 0)
    return max(positions * width + reading, decoding)


def _state(layer: TransformerLayer, length: int, batch: int) -> int:
    kind = ATTENTION_KINDS.get(layer.attention)
    return state_numbers(kind, layer.heads, layer.qkv_dim // layer.heads, length, batch)
