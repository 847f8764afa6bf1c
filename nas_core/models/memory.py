"""What networks hold in memory, by formula: parts that the kinds of network add up.

Numbers are counted, not bytes; :data:`BYTES` are of one number in fp32. Shapes: B batch, T/S target and source length,
C channels, H heads, D head dim.
"""

from __future__ import annotations

from nas_core.layers.attention.kinds import AttentionKind, StateValue

BYTES = 4
"""Bytes of a number in fp32."""


def state_numbers(kind: AttentionKind, heads: int, dim: int, length: int, batch: int) -> int:
    """What decoding keeps of causal self-attention after ``length`` positions, by the shapes that the kind states."""
    return _counted(kind.state_values(heads, dim, "length"), length, batch)


def _counted(values: tuple[StateValue, ...], length: int, batch: int) -> int:
    total = 0
    for value in values:
        numbers = 1
        for size in value.shape:
            numbers *= {"batch": batch, "length": length}[size] if isinstance(size, str) else size
        total += numbers
    return total


def layer_numbers(
    kind: AttentionKind, batch: int, length: int, width: int, qkv: int, ffn: int, heads: int, clip: int = 0
) -> int:
    """The most that one layer holds beside its input while it runs: queries, keys, values and outputs of its attention
    and what the kind says that it holds, or its hidden units before and after their activation with
    what they are made of.

    Args:
        batch: B. length: of each sequence. width: C. qkv: H * D. heads: H.
        clip: farthest distance of relative positions, 0 for none.
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
    """The most that self-attention holds beside its input; arguments as of :func:`layer_numbers`.

    Args:
        causal: each position reads itself and earlier ones, and what decoding keeps of them is made.
    """
    held = kind.held(batch, length, length, qkv, heads, clip, causal=causal)
    return batch * length * (4 * qkv + width) + held
