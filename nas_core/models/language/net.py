"""Elastic decoder-only transformer, with or without experts.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.kinds import AttentionState
from nas_core.layers.linear import ElasticLayerNorm
from nas_core.layers.transformer import Dropouts, EncoderLayerWeights, LayerForm, norm
from nas_core.layers.weights import NormWeights
from nas_core.models.genes import StackGenes
from nas_core.models.stack import TokenStack
from nas_core.space import Architecture, SearchSpace

_CONSTANT = ("head_dim", "context_length")
GENES = StackGenes(
    "a language model", ("layers", "embed_dim", "heads", "ffn_dim", *_CONSTANT), _CONSTANT, role="decoder"
)


def check_language_space(space: SearchSpace) -> None:
    for gene in GENES.names:
        GENES.check_gene(space, gene)
    GENES.check_attention(space)


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Settings of a language model that are not searched."""

    tied_output: bool = True
    """Use one table for input embeddings and output projection."""
    dropout: float = 0.0
    """Dropout after embeddings and sublayers, scaled with the subnet's width as in HAT."""
    attention_dropout: float = 0.0
    """Dropout of attention weights."""
    activation_dropout: float = 0.0
    """Dropout of hidden units of feed-forward layers, scaled like ``dropout``."""
    norm_first: bool = False
    """True for layer norm before each sublayer, False for after it."""
    final_norm: bool | None = None
    """Apply a layer norm after the last layer. Default: the value of ``norm_first``."""
    activation: str = "relu"
    """Activation of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "sinusoidal"
    """One of :data:`nas_core.layers.positions.POSITIONS`. Tables have ``context_length`` rows."""
    first_position: int = 0
    """Position of the first token, 2 in fairseq's transformer."""
    embedding_scale: float | None = None
    """Factor of embeddings. Default: the square root of the subnet's width, as in HAT."""
    layer_order: tuple[int, ...] = ()
    """Layer indices by decreasing importance. By default, shallower networks keep the first layers."""
    padding_idx: int = 1
    mos: MoSConfig = field(default_factory=MoSConfig)
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention. ``max_length`` is replaced by the space's ``context_length``."""

    @property
    def has_final_norm(self) -> bool:
        return self.norm_first if self.final_norm is None else self.final_norm

    def static(self) -> LanguageConfig:
        """Return the settings of an extracted network."""
        return replace(self, mos=MoSConfig(), layer_order=())


class LanguageSubnet(NamedTuple):
    """Weights of one architecture."""

    embedding: Tensor
    """(V, C)"""
    output: Tensor
    """``(V, C)``, the same tensor as ``embedding`` if tied."""
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights | None
    architecture: Architecture


class LanguageCache:
    """Decoding states of all layers."""

    def __init__(self, past: list[AttentionState | None], length: int = 0) -> None:
        self.past, self.length = past, length

    def reorder(self, order: Tensor) -> None:
        self.past = [None if past is None else past.reorder(order) for past in self.past]

    def copy(self) -> LanguageCache:
        """Return a copy that later steps do not change."""
        return LanguageCache([copy.copy(past) for past in self.past], self.length)


class LanguageNet(TokenStack):
    """Decoder-only transformer for search spaces with the genes of :mod:`nas_core.space.language`.

    Call ``forward`` for all positions at once. For one position at a time, call ``start`` or ``read``, then ``step``.
    """

    config: LanguageConfig

    def __init__(
        self,
        space: SearchSpace,
        vocab: int,
        config: LanguageConfig | None = None,
        reference_width: int | None = None,
    ) -> None:
        config = config or LanguageConfig()
        check_language_space(space)
        context_length = space.largest().number("context_length")
        stored = config.first_position + context_length
        super().__init__(space, vocab, config, reference_width, stored, not config.tied_output)
        self.context_length = context_length
        kinds = GENES.layer_attention(space, config.linear, context_length)
        form = LayerForm(config.norm_first, config.activation)
        self._build_layers(GENES.widest_layers(space), kinds, form, causal=True)
        self.norm = ElasticLayerNorm(self.embed_dim) if config.has_final_norm else None

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> LanguageSubnet:
        layers, width = self._select_layers(architecture), architecture.number("embed_dim")
        return LanguageSubnet(
            *self._select_tables(width),
            layers,
            None if self.norm is None else self.norm.select(width),
            architecture,
        )

    # -- computing -----------------------------------------------------------------------------------------------------

    def positions_at(self, first: int, last: int, features: int) -> Tensor:
        """Return the embeddings ``(last - first, features)`` of positions, counted from the first token."""
        offset = self.config.first_position
        table: Tensor = self.positions(offset + last, features)
        return table[offset + first :]

    def _embed(self, tokens: Tensor, table: Tensor, positions: Tensor) -> Tensor:
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(table)
        return x + positions.to(table.dtype)

    def features(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """Compute features ``(B, T, C)`` of right-padded ``tokens`` ``(B, T)``."""
        table = subnet.embedding
        drop = Dropouts.of(self, table.shape[1] / self.positions.width)
        x = self._embed(tokens, table, self.positions_at(0, tokens.shape[1], table.shape[1]))
        x = F.dropout(x, drop.residual) if drop.residual else x
        for layer, weights in zip(self.layers, subnet.layers, strict=False):
            x = layer(x, weights, None, drop)
        return self._normed(subnet, x)

    def _normed(self, subnet: LanguageSubnet, x: Tensor) -> Tensor:
        return x if subnet.norm is None else norm(x, subnet.norm)

    def forward(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """Compute next-token logits ``(B, T, V)`` of ``tokens`` ``(B, T)``."""
        return F.linear(self.features(subnet, tokens), subnet.output)

    def start(self, subnet: LanguageSubnet) -> LanguageCache:
        return LanguageCache([None] * len(subnet.layers))

    def read(self, subnet: LanguageSubnet, tokens: Tensor) -> tuple[Tensor, LanguageCache]:
        """Compute the features ``(B, C)`` of the last token of a prompt ``(B, T)`` without padding, and the cache."""
        width, length = subnet.embedding.shape[1], tokens.shape[1]
        x = self._embed(tokens, subnet.embedding, self.positions_at(0, length, width))
        cache = self.start(subnet)
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.read(x, weights)
        cache.length = length
        return self._normed(subnet, x[:, -1]), cache

    def step(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Compute logits ``(B, V)`` for the next tokens ``(B,)``, and update the cache."""
        return F.linear(self.step_features(subnet, tokens, cache), subnet.output)

    def step_features(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Compute the features ``(B, C)`` of :meth:`step`, before the output projection."""
        table = subnet.embedding
        position = self.positions_at(cache.length, cache.length + 1, table.shape[1])
        return self.step_embedded(subnet, self._embed(tokens[:, None], table, position), cache)

    def step_embedded(self, subnet: LanguageSubnet, x: Tensor, cache: LanguageCache) -> Tensor:
        """Compute :meth:`step_features` for embedded tokens ``x`` ``(B, 1, C)``."""
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.step(x, weights, cache.past[index])
        cache.length += 1
        return self._normed(subnet, x[:, 0])


def length_limit(space: SearchSpace, config: LanguageConfig) -> int | None:
    """Return the maximum length of attention and positions, or None if unlimited."""
    if config.positions == "sinusoidal" and not GENES.bounded(space):
        return None
    return space.largest().number("context_length")
