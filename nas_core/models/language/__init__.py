"""Decoder-only language models with a choice of attention per layer."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.language.net import LanguageConfig, LanguageNet

__all__ = [
    "LanguageConfig",
    "LanguageNet",
]

__getattr__, __dir__ = lazy_names(__name__)
