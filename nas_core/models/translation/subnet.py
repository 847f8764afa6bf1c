"""What passes between the parts of a translation network: its settings, a subnet's weights, the encoder's memory, the
decoder's cache.

Shapes: B batch, S source length, C channels, H heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer import CosformerState
from nas_core.layers.attention.softmax import CrossAttentionWeights, LinearAttention, Past, cross_keys_values
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
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention in the decoder: of its self-attention and of that to the source."""
    linear_encoder_length: int | None = None
    """M of the encoder's linear attention; None: each sentence's own length."""
    relative_length: int = 0
    """Farthest distance that softmax self-attention tells apart (Shaw et al. 2018, added to the keys); 0: none."""


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


class LayerMemory(NamedTuple):
    """What one decoder layer reads: its keys and values of the memory, where tokens are, and their positions."""

    keys_values: KeysValues
    mask: Tensor | None
    """(B, 1, 1, S)"""
    positions: Tensor | None
    """(B, S) or (S,), for linear attention"""

    @classmethod
    def of(cls, weights: CrossAttentionWeights, output: Tensor, tokens: Tensor | None, reads: int) -> LayerMemory:
        """From the outputs of ``reads`` encoder layers, one after the other in time."""
        pair = cross_keys_values(output, weights)
        mask = None if tokens is None else tokens.repeat(1, reads)[:, None, None]
        if weights.linear is None:
            return cls(pair, mask, None)
        if tokens is None:
            positions = torch.arange(output.shape[1] // reads, device=output.device).repeat(reads)
        else:
            positions = (tokens.cumsum(1, dtype=torch.long) - 1).clamp(min=0).repeat(1, reads)
        return cls(pair, mask, positions)

    def summed(self, weights: CrossAttentionWeights) -> Past:
        """What decoding step by step reads: keys and values, or their sums in linear attention."""
        if weights.linear is None:
            return self.keys_values
        tokens, config = None if self.mask is None else self.mask[:, 0, 0], weights.linear
        return CosformerState.of(*self.keys_values, config.longest, tokens, self.positions, config.normalize)


class DecoderCache:
    """Keys and values (or, in linear attention, their sums) of the positions decoded so far and of the encoder's
    output, per decoder layer.

    ``rows`` (B,) says which sentence of the memory each row of the batch decodes.
    """

    def __init__(self, cross: list[Past], masks: list[Tensor | None], rows: Tensor | None) -> None:
        self.length = 0
        self.past: list[Past | None] = [None] * len(cross)
        self.cross, self.masks, self.rows = cross, masks, rows
        if rows is not None:
            self._select_sentences(rows)

    def reorder(self, order: Tensor) -> None:
        """Keep rows ``order`` (B,) of the batch: beams that moved, sentences that finished.

        The memory's keys and values are moved only if a row then decodes another sentence; beams of one sentence that
        change places, the usual case, share them.
        """
        self.past = [None if past is None else _pick(past, order) for past in self.past]
        if self.rows is None:
            self._select_sentences(order)
            return
        rows = self.rows.index_select(0, order)
        if not torch.equal(rows, self.rows):
            self._select_sentences(order)
            self.rows = rows

    def _select_sentences(self, order: Tensor) -> None:
        self.cross = [_pick(pair, order) for pair in self.cross]
        self.masks = [None if mask is None else mask.index_select(0, order) for mask in self.masks]


def _pick(pair: Past, order: Tensor) -> Past:
    if isinstance(pair, CosformerState):
        return pair.reorder(order)
    return pair[0].index_select(0, order), pair[1].index_select(0, order)
