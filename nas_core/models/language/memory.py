"""What a language workload holds in memory, by formula: its weights, what is live beside them, the decoding cache.

Shapes: B batch, P prompt length, C channels.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.layers.positions import ROWS
from nas_core.models.language.costs import parameters
from nas_core.models.language.subnet import LanguageConfig
from nas_core.models.language.workload import LanguageWorkloadConfig
from nas_core.models.memory import attention_numbers, state_numbers
from nas_core.space import Architecture
from nas_core.space.stack import TransformerLayer, transformer_layers


def weight_numbers(architecture: Architecture, config: LanguageWorkloadConfig) -> int:
    """All parameters, those of the table of words included, and the table of sinusoids."""
    rows, form = max(config.prompt_length, 2 * ROWS) if config.prompt_length > ROWS else ROWS, LanguageConfig()
    while config.prompt_length + config.new_tokens > rows:  # which grows step by step
        rows *= 2
    weights = parameters(architecture, config.vocab, form.tied_output, form.has_final_norm)
    return weights + rows * architecture.number("embed_dim")


def cache_numbers(architecture: Architecture, config: LanguageWorkloadConfig) -> tuple[int, ...]:
    """What the attention of each layer keeps after the prompt and the new tokens."""
    length = config.prompt_length + config.new_tokens
    return tuple(_state(layer, length, config.batch) for layer in transformer_layers(architecture))


def live_numbers(architecture: Architecture, config: LanguageWorkloadConfig) -> int:
    """The most that is held beside the weights: while the prompt is read, what the layers before have kept of it and
    the layer that runs; while decoding, what is kept of the prompt, the cache, the last step's logits, and either the
    layer that runs, which has its cache twice, or new logits."""
    width, positions = architecture.number("embed_dim"), config.batch * config.prompt_length
    caches = cache_numbers(architecture, config)
    kept = reading = stepping = 0
    for layer, after in zip(transformer_layers(architecture), caches, strict=True):
        kind, sizes = KINDS.get(layer.attention), (width, layer.qkv_dim, layer.heads)
        attending = attention_numbers(kind, config.batch, config.prompt_length, *sizes, causal=True)
        own = _state(layer, config.prompt_length, config.batch)
        transforming = own + positions * (max(layer.ffn_dim, 2 * width) + 3 * width)
        reading = max(reading, kept + max(attending, transforming))
        stepping = max(stepping, after + attention_numbers(kind, config.batch, 1, *sizes, causal=True))
        kept += own
    logits = config.batch * config.vocab
    decoding = kept + sum(caches) + max(stepping, logits) + (logits if config.new_tokens > 1 else 0)
    return max(positions * width + reading, decoding)


def _state(layer: TransformerLayer, length: int, batch: int) -> int:
    kind = KINDS.get(layer.attention)
    return state_numbers(kind, layer.heads, layer.qkv_dim // layer.heads, length, batch)
