"""Attention mechanisms and the layers that use them."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.layers.attention.cosformer.kind import LinearAttention
    from nas_core.layers.attention.kinds import ATTENTION_KINDS, AttentionKind
    from nas_core.layers.attention.softmax import SoftmaxAttention

__all__ = [
    "ATTENTION_KINDS",
    "AttentionKind",
    "LinearAttention",
    "SoftmaxAttention",
]

__getattr__, __dir__ = lazy_names(__name__)
