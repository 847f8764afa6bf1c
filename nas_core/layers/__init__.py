"""What a layer computes: elastic layers, and feed-forward layers whose experts are mixed for the architecture."""

from nas_core.layers.feed_forward import ElasticFeedForward, FeedForwardWeights
from nas_core.layers.linear import ElasticEmbedding, ElasticLayerNorm, ElasticLinear
from nas_core.layers.mos import MoSConfig, MoSLinear, mixtures
from nas_core.layers.routers import ROUTERS, Router
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
