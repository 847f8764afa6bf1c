"""Masked language models: elastic bidirectional encoders, like RoBERTa and BERT."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.masked_lm.net import MaskedLMConfig, MaskedLMNet

__all__ = [
    "MaskedLMConfig",
    "MaskedLMNet",
]

__getattr__, __dir__ = lazy_names(__name__)
