"""What a translation workload holds in memory, by formula: its weights, what is live beside them, the decoding cache.

Shapes: S source length, T target length, C channels.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import KINDS
from nas_core.layers.positions import ROWS
from nas_core.models.memory import layer_numbers, state_numbers
from nas_core.models.translation.costs import parameters
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of


def weight_numbers(architecture: Architecture, config: TranslationWorkloadConfig) -> int:
    """All parameters, those of three embedding tables included, and the tables of sinusoids."""
    source, target = ROWS, ROWS
    if config.source_length > source:
        source = max(config.source_length, 2 * source)
    while config.target_length > target:  # which grows step by step
        target *= 2
    tables = source * architecture.number("encoder.embed_dim") + target * architecture.number("decoder.embed_dim")
    return tables + parameters(architecture, config.source_vocab, config.target_vocab)


def cache_numbers(architecture: Architecture, config: TranslationWorkloadConfig) -> tuple[int, int]:
    """What T steps of ``beam`` hypotheses leave in the decoder's self-attention, and what it reads of the source."""
    own = across = 0
    layers = architecture.number("encoder.layers")
    genes = (architecture.numbers(f"decoder.{name}") for name in ("self_heads", "cross_heads", "arbitrary_cross"))
    widths = (qkv_dims(architecture, f"decoder.{name}") for name in ("self_heads", "cross_heads"))
    kinds = (attention_of(architecture, gene) for gene in ATTENTION_GENES[1:])
    for heads, cross_heads, option, q, p, kind, cross in zip(*genes, *widths, *kinds, strict=True):
        own += state_numbers(KINDS.get(kind), heads, q // heads, config.target_length, config.beam)
        source = config.source_length * min(READ_LAYERS[option], layers)
        across += state_numbers(KINDS.get(cross), cross_heads, p // cross_heads, source, config.beam)
    return own, across


def live_numbers(architecture: Architecture, config: TranslationWorkloadConfig) -> int:
    """The most that is held beside the weights: in the encoder all layers' outputs and the layer that runs; while
    the decoder starts what it reads of the source, and what that is made of or its copies for the hypotheses; while
    decoding the cache, whose self-attention is there twice when hypotheses change places, the memory and the logits."""
    s, e = config.source_length, architecture.number("encoder.embed_dim")
    own, across = cache_numbers(architecture, config)
    genes = architecture.numbers("encoder.self_heads"), architecture.numbers("encoder.ffn_dim")
    kinds = attention_of(architecture, ATTENTION_GENES[0])
    layers = [
        layer_numbers(KINDS.get(kind), 1, s, e, q, ffn, heads)
        for heads, ffn, kind, q in zip(*genes, kinds, qkv_dims(architecture, "encoder.self_heads"), strict=True)
    ]
    encoding = s * e * (len(layers) + 1) + max(layers, default=0)
    read = [min(READ_LAYERS[option], len(layers)) for option in architecture.numbers("decoder.arbitrary_cross")]
    memory = s * e * max(read, default=1)
    once = across // config.beam
    starting = once + max(across, _for_memories(architecture, s, read))
    stepping = across + 2 * own + config.beam * config.target_vocab
    return max(encoding, memory + starting, memory + stepping)


def _for_memories(architecture: Architecture, length: int, read: list[int]) -> int:
    """What is held while what the decoder reads is made: keys and values of all layers, which are made first, and what
    one layer holds."""
    widths, kinds = qkv_dims(architecture, "decoder.cross_heads"), attention_of(architecture, ATTENTION_GENES[2])
    held = [
        KINDS.get(kind).held_for_memory(length * several, width)
        for kind, width, several in zip(kinds, widths, read, strict=True)
    ]
    return sum(each for each, _ in held) + max((each for _, each in held), default=0)
