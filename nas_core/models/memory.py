"""Formulas for memory of networks, in tensor elements."""

from __future__ import annotations

import math

from nas_core.layers.attention.kinds import AttentionKind

BYTES = 4


def state_numbers(kind: AttentionKind, heads: int, dim: int, length: int, batch: int) -> int:
    """Count elements of a decoding state after ``length`` positions."""
    sizes = {"batch": batch, "length": length}
    shapes = [value.shape for value in kind.state_values(heads, dim, "length")]
    return sum(math.prod(sizes[size] if isinstance(size, str) else size for size in shape) for shape in shapes)


def layer_numbers(
    kind: AttentionKind, batch: int, length: int, width: int, qkv: int, ffn: int, heads: int, clip: int = 0
) -> int:
    """Count elements of a layer's activations at their peak, without its input.

    Args:
        width: channels.
        qkv: width of the queries, summed over heads.
        clip: largest relative distance. 0 without relative positions.
    """
    attending = attention_numbers(kind, batch, length, width, qkv, heads, clip)
    return max(attending, batch * length * (2 * ffn + 2 * width))


def attention_numbers(
    kind: AttentionKind,
    batch: int,
    length: int,
    width: int,
    qkv: int,
    heads: int,
    clip: int = 0,
    causal: bool = False,
) -> int:
    """Count elements of self-attention's activations at their peak, and of its decoding state if causal.

    For arguments, see :func:`layer_numbers`.
    """
    buffers = kind.temporary_numel(batch, length, length, qkv, heads, clip, causal=causal)
    return batch * length * (4 * qkv + width) + buffers
