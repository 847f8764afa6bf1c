"""Elastic layers, mixtures of experts, and attention."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.layers.feed_forward import ElasticFeedForward
    from nas_core.layers.linear import ElasticLinear
    from nas_core.layers.mos import MoSConfig, MoSLinear

__all__ = [
    "ElasticFeedForward",
    "ElasticLinear",
    "MoSConfig",
    "MoSLinear",
]

__getattr__, __dir__ = lazy_names(__name__)
