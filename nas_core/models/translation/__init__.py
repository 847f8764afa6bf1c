"""Encoder-decoder transformers for translation, for the search spaces of HAT, mFormer and MoS."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.translation.net import TranslationConfig, TranslationNet

__all__ = [
    "TranslationConfig",
    "TranslationNet",
]

__getattr__, __dir__ = lazy_names(__name__)
