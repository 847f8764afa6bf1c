"""Linear attention with cosine reweighting (cosFormer)."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.layers.attention.cosformer.forms import cosformer_attention
    from nas_core.layers.attention.cosformer.kind import CosformerState

__all__ = [
    "CosformerState",
    "cosformer_attention",
]

__getattr__, __dir__ = lazy_names(__name__)
