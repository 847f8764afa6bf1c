"""Kinds of attention, one file or folder each, and what is the same for all of them."""

from nas_core.layers.attention.cosformer import LinearAttention
from nas_core.layers.attention.kinds import KINDS, PLACES, AttentionKind, AttentionState, StateValue, placed
from nas_core.layers.attention.local import LocalAttention, naive_local
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
)
from nas_core.layers.attention.softmax import KeysValues, SoftmaxAttention, naive_attention

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
    "placed",
]
