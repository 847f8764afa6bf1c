"""Linear attention with cosine reweighting (cosFormer), in every form that training and decoding need."""

from nas_core.layers.attention.cosformer.attention import cosformer_attention, cosformer_packed
from nas_core.layers.attention.cosformer.forms import FORMS
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.cosformer.naive import cosformer_naive
from nas_core.layers.attention.cosformer.normalize import NORMALIZE
from nas_core.layers.attention.cosformer.state import CosformerState

__all__ = [
    "FORMS",
    "NORMALIZE",
    "CosformerState",
    "LinearAttention",
    "cosformer_attention",
    "cosformer_naive",
    "cosformer_packed",
]
