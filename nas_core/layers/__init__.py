"""Elastic layers, mixtures of experts, and attention."""

from nas_core.layers.feed_forward import ElasticFeedForward, FeedForwardWeights
from nas_core.layers.linear import ElasticEmbedding, ElasticLayerNorm, ElasticLinear
from nas_core.layers.mos import ROUTERS, MoSConfig, MoSLinear, Router, mixtures
from nas_core.layers.transformer import ElasticDecoderLayer, ElasticEncoderLayer

__all__ = [
    "ROUTERS",
    "ElasticDecoderLayer",
    "ElasticEmbedding",
    "ElasticEncoderLayer",
    "ElasticFeedForward",
    "ElasticLayerNorm",
    "ElasticLinear",
    "FeedForwardWeights",
    "MoSConfig",
    "MoSLinear",
    "Router",
    "mixtures",
]
