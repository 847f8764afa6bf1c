"""Encoder-decoder transformers for translation, over HAT's, mFormer's and MoS's spaces."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.translation.costs import Lengths, flops, parameters
    from nas_core.models.translation.kind import translation_graph
    from nas_core.models.translation.net import Subnet, TranslationConfig, TranslationNet
    from nas_core.models.translation.workload import TranslationWorkload, TranslationWorkloadConfig

__all__ = [
    "Lengths",
    "Subnet",
    "TranslationConfig",
    "TranslationNet",
    "TranslationWorkload",
    "TranslationWorkloadConfig",
    "flops",
    "parameters",
    "translation_graph",
]

__getattr__, __dir__ = lazy_names(__name__)
