"""What passes between the parts of a language model: its settings, a subnet's weights, what decoding keeps.

Shapes: B batch, C channels, V vocabulary.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.kinds import AttentionState
from nas_core.layers.transformer import EncoderLayerWeights
from nas_core.layers.weights import NormWeights
from nas_core.space import Architecture


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Everything about a language model that is not searched."""

    tied_output: bool = True
    """Input and output share one table."""
    dropout: float = 0.0
    """After embeddings and sublayers; scaled by a subnet's width over the supernet's, as in HAT."""
    attention_dropout: float = 0.0
    """On attention probabilities; not scaled."""
    activation_dropout: float = 0.0
    """On hidden units of feed-forward layers; scaled like ``dropout``."""
    norm_first: bool = False
    """Layer norm before each sublayer instead of after it."""
    final_norm: bool | None = None
    """Layer norm after the last layer; default: where norms stand before sublayers."""
    activation: str = "relu"
    """Function of the hidden units of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "sinusoidal"
    """One of :data:`nas_core.layers.positions.POSITIONS`; a table that is stored has ``context_length`` rows."""
    first_position: int = 0
    """The sinusoid of the first token; 2 in fairseq's own transformer, whose positions begin behind the padding."""
    embedding_scale: float | None = None
    """By what embeddings are multiplied; default: the square root of the subnet's width, as in HAT. A network that was
    taken over keeps the scale that it was trained with at every width."""
    layer_order: tuple[int, ...] = ()
    """Layers, the one that shallower networks keep longest first; default: they keep the first ones."""
    padding_idx: int = 1
    """Index of the padding token."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    """Experts of the feed-forward layers."""
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention, but for its ``max_length``, which is the space's ``context_length``."""

    @property
    def has_final_norm(self) -> bool:
        """Whether a layer norm follows the last layer."""
        return self.norm_first if self.final_norm is None else self.final_norm

    def static(self) -> LanguageConfig:
        """The settings of a static network: no experts, and layers that were put in order when it was taken out."""
        return replace(self, mos=MoSConfig(), layer_order=())


class LanguageSubnet(NamedTuple):
    """The weights of one architecture; names of layers and of the norm are the static model's parameter names."""

    embedding: Tensor
    """(V, C)"""
    output: Tensor
    """(V, C); the same tensor where it is shared."""
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights | None
    architecture: Architecture


class LanguageCache:
    """What the attentions of all layers keep of the positions so far: keys and values, in linear attention their sums,
    in local attention the last ones."""

    def __init__(self, past: list[AttentionState | None], length: int = 0) -> None:
        self.past, self.length = past, length

    def reorder(self, order: Tensor) -> None:
        """Keep rows ``order`` (B,) of the batch: beams that moved, sequences that finished."""
        self.past = [None if past is None else past.reorder(order) for past in self.past]

    def copy(self) -> LanguageCache:
        """The same state, from which decoding may go on another way; steps put new tensors in the place of old ones."""
        return LanguageCache([copy.copy(past) for past in self.past], self.length)
