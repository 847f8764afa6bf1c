"""Linear attention with cosine reweighting (cosFormer), for training and decoding."""

from nas_core.layers.attention.cosformer.common import NORMALIZE
from nas_core.layers.attention.cosformer.forms import FORMS, cosformer_attention, cosformer_naive
from nas_core.layers.attention.cosformer.kind import CosformerState, LinearAttention

__all__ = [
    "FORMS",
    "NORMALIZE",
    "CosformerState",
    "LinearAttention",
    "cosformer_attention",
    "cosformer_naive",
]
