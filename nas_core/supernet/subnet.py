"""What passes between the parts of a translation network: its settings, a subnet's weights, the encoder's memory, the
decoder's cache.

Shapes: B batch, S source length, C channels, H heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.transformer import DecoderLayerWeights, EncoderLayerWeights, KeysValues
from nas_core.layers.weights import Affine
from nas_core.space import Architecture


@dataclass(frozen=True, kw_only=True)
class TranslationConfig:
    """Everything about a translation network that is not searched."""

    share_all_embeddings: bool = False
    """Source, target and output share one table (needs one joint vocabulary)."""
    share_decoder_embeddings: bool = False
    """Target input and output share one table."""
    dropout: float = 0.0
    """After embeddings and sublayers; scaled by a subnet's width over the supernet's, as in HAT."""
    attention_dropout: float = 0.0
    """On attention probabilities; not scaled."""
    activation_dropout: float = 0.0
    """On hidden units of feed-forward layers; scaled like ``dropout``."""
    norm_first: bool = False
    """Layer norm before each sublayer instead of after it."""
    padding_idx: int = 1
    """Index of the padding token in both vocabularies."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    """Experts of the feed-forward layers."""


class Subnet(NamedTuple):
    """The weights of one architecture; field names are the static model's parameter names."""

    source_embedding: Tensor
    target_embedding: Tensor
    output: Tensor
    encoder_layers: tuple[EncoderLayerWeights, ...]
    decoder_layers: tuple[DecoderLayerWeights, ...]
    encoder_norm: Affine | None
    decoder_norm: Affine | None
    architecture: Architecture


class Memory(NamedTuple):
    """What the decoder reads: outputs (B, S, C) of the last encoder layers, last first, and where tokens are (B, S)."""

    outputs: tuple[Tensor, ...]
    tokens: Tensor | None

    def reorder(self, order: Tensor) -> Memory:
        """Rows ``order`` of the batch."""
        outputs = tuple(output.index_select(0, order) for output in self.outputs)
        return Memory(outputs, None if self.tokens is None else self.tokens.index_select(0, order))


class DecoderCache:
    """Keys and values of the positions decoded so far and of the encoder's output, per decoder layer."""

    def __init__(self, cross: list[KeysValues], masks: list[Tensor | None]) -> None:
        self.length = 0
        self.past: list[KeysValues | None] = [None] * len(cross)
        self.cross = cross
        self.masks = masks

    def reorder(self, order: Tensor) -> None:
        """Keep rows ``order`` (B,) of the batch: beams that moved, sentences that finished."""

        def pick(pair: KeysValues) -> KeysValues:
            return pair[0].index_select(0, order), pair[1].index_select(0, order)

        self.past = [None if past is None else pick(past) for past in self.past]
        self.cross = [pick(pair) for pair in self.cross]
        self.masks = [None if mask is None else mask.index_select(0, order) for mask in self.masks]
