"""Kinds of attention, and the layers that use any of them."""

from nas_core.layers.attention.cosformer import LinearAttention
from nas_core.layers.attention.kinds import (
    KINDS,
    PLACES,
    AttentionKind,
    AttentionState,
    KeysValues,
    StateValue,
    resolve_kind,
)
from nas_core.layers.attention.local import LocalAttention, naive_local
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
)
from nas_core.layers.attention.softmax import SoftmaxAttention, naive_attention

__all__ = [
    "KINDS",
    "PLACES",
    "AttentionKind",
    "AttentionState",
    "CrossAttentionWeights",
    "ElasticCrossAttention",
    "ElasticSelfAttention",
    "KeysValues",
    "LinearAttention",
    "LocalAttention",
    "SelfAttentionWeights",
    "SoftmaxAttention",
    "StateValue",
    "naive_attention",
    "naive_local",
    "resolve_kind",
]
