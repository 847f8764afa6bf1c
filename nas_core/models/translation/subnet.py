"""What passes between the parts of a translation network: its settings, a subnet's weights, the encoder's memory, the
decoder's cache.

Shapes: B batch, S source length, C channels, H heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer.common import check_length
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.projections import cross_keys_values
from nas_core.layers.attention.kinds import AttentionState
from nas_core.layers.attention.projections import CrossAttentionWeights
from nas_core.layers.torch_modes import is_exporting
from nas_core.layers.transformer import DecoderLayerWeights, EncoderLayerWeights
from nas_core.layers.weights import NormWeights
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
    activation: str = "relu"
    """Function of the hidden units of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "sinusoidal"
    """One of :data:`nas_core.layers.positions.POSITIONS`."""
    stored_positions: tuple[int, int] = (1024, 1024)
    """How many positions of source and target are stored, where they are."""
    first_position: int = 0
    """The sinusoid of the first token; 2 in fairseq's own transformer, whose positions begin behind the padding."""
    embedding_scale: tuple[float, float] | None = None
    """By what embeddings of source and target are multiplied; default: the square root of the subnet's width, as in
    HAT. A network that was taken over keeps the scale that it was trained with at every width."""
    encoder_order: tuple[int, ...] = ()
    """Encoder layers, the one that shallower networks keep longest first; default: they keep the first ones."""
    decoder_order: tuple[int, ...] = ()
    """The same of decoder layers."""
    padding_idx: int = 1
    """Index of the padding token in both vocabularies."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    """Experts of the feed-forward layers."""
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention. Its ``max_length`` is the longest sequence of any attention of the decoder that is
    made for one: of its self-attention and of that to the source."""
    linear_encoder_length: int | None = None
    """M of the encoder's linear attention, and of any that is scaled; None: each sentence's own length."""
    relative_length: int = 0
    """Farthest distance that self-attention tells apart where its kind can, as softmax (Shaw et al. 2018, added to the
    keys); 0: none."""

    def static(self) -> TranslationConfig:
        """The settings of a static network: no experts, and layers that were put in order when it was taken out."""
        return replace(self, mos=MoSConfig(), encoder_order=(), decoder_order=())


class Subnet(NamedTuple):
    """The weights of one architecture; field names are the static model's parameter names."""

    source_embedding: Tensor
    target_embedding: Tensor
    output: Tensor
    encoder_layers: tuple[EncoderLayerWeights, ...]
    decoder_layers: tuple[DecoderLayerWeights, ...]
    encoder_norm: NormWeights | None
    decoder_norm: NormWeights | None
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

    keys_values: tuple[Tensor, Tensor]
    mask: Tensor | None
    """(B, 1, 1, S)"""
    positions: Tensor | None
    """(B, S) or (S,), for kinds of attention that read them"""

    @classmethod
    def of(cls, weights: CrossAttentionWeights, output: Tensor, tokens: Tensor | None, reads: int) -> LayerMemory:
        """From the outputs of ``reads`` encoder layers, one after the other in time.

        Raises:
            ConfigError: a sentence is longer than attention that reads positions was made for.
        """
        pair = cross_keys_values(output, weights)
        mask = None if tokens is None else tokens.repeat(1, reads)[:, None, None]
        if not weights.kind.reads_positions:
            return cls(pair, mask, None)
        length, longest = output.shape[1] // reads, weights.kind.longest
        if tokens is None:
            positions = torch.arange(length, device=output.device)
        else:
            positions = (tokens.cumsum(1, dtype=torch.long) - 1).clamp(min=0)
        if longest is not None and length > longest and not is_exporting():
            # Padding may be what is too long: the only case in which the host has to read what the tokens count.
            check_length(length if tokens is None else int(positions.max()) + 1, longest)
        return cls(pair, mask, positions.repeat(reads) if tokens is None else positions.repeat(1, reads))

    def kept(self, weights: CrossAttentionWeights) -> AttentionState:
        """What decoding step by step reads: keys and values, or what the kind of attention makes of them."""
        return weights.kind.memory(*self.keys_values, self.mask, self.positions)


class DecoderCache:
    """What the attentions keep of the positions decoded so far and of the encoder's output, per decoder layer: keys
    and values, in linear attention their sums, in local attention the last ones.

    ``rows`` (B,) says which sentence of the memory each row of the batch decodes.
    """

    def __init__(self, cross: list[AttentionState], masks: list[Tensor | None], rows: Tensor | None) -> None:
        self.length = 0
        self.past: list[AttentionState | None] = [None] * len(cross)
        self.cross, self.masks, self.rows = cross, masks, rows
        if rows is not None:
            self._select_sentences(rows)

    def reorder(self, order: Tensor) -> None:
        """Keep rows ``order`` (B,) of the batch: beams that moved, sentences that finished.

        Beams of one sentence that change places, the usual case, share the memory's keys and values. On the CPU these
        are moved only if a row then decodes another sentence. On other devices they are always moved: to ask would wait
        for the device at each step, which costs more than the copy.
        """
        self.past = [None if past is None else past.reorder(order) for past in self.past]
        if self.rows is None:
            self._select_sentences(order)
            return
        rows = self.rows.index_select(0, order)
        if rows.device.type != "cpu" or not torch.equal(rows, self.rows):
            self._select_sentences(order)
            self.rows = rows

    def _select_sentences(self, order: Tensor) -> None:
        self.cross = [memory.reorder(order) for memory in self.cross]
        self.masks = [None if mask is None else mask.index_select(0, order) for mask in self.masks]
