"""The masked language model: an elastic bidirectional encoder with RoBERTa's heads, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from ``SearchSpace.of``, the space
of one architecture). It computes with a ``Subnet``, the weights of one architecture; the module itself remembers none.

Shapes: B batch, T length, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import CheckpointError, unknown_choice
from nas_core.layers import ElasticEmbedding, ElasticEncoderLayer, ElasticLayerNorm
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.modes import is_exporting
from nas_core.layers.positions import StoredPositions, positions_of
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.models.masked_lm.genes import GENES, check_masked_lm_space
from nas_core.models.masked_lm.heads import ElasticClassHead, ElasticTokenHead, class_logits, token_logits
from nas_core.models.masked_lm.static import static_state
from nas_core.models.masked_lm.subnet import ClassHead, MaskedLMConfig, Subnet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers

__all__ = ["MaskedLMNet"]


class MaskedLMNet(nn.Module):
    """Masked language model of a search space with the genes of :mod:`nas_core.space.masked_lm`.

    As fairseq's RoBERTa: tokens and learned positions, a layer norm, encoder layers that read all tokens but padding,
    and a head that predicts tokens. ``select(architecture)`` gives the weights of one architecture, mixing experts
    once; ``encode``, ``predict`` and ``classify`` compute with them.

    Raises:
        SpaceError: the space lacks a gene that this network has.
    """

    reference_width: Tensor
    output: ElasticEmbedding

    def __init__(
        self,
        space: SearchSpace,
        vocabulary: int,
        config: MaskedLMConfig | None = None,
        reference_width: int | None = None,
    ) -> None:
        super().__init__()
        self.space = space
        self.config = config = config or MaskedLMConfig()
        check_masked_lm_space(space)
        self.embed_dim = width = space.largest().number("embed_dim")
        self.register_buffer("reference_width", torch.tensor(reference_width or width))
        self.embedding = ElasticEmbedding(vocabulary, width, config.padding_idx)
        if not config.share_embeddings:
            self.output = ElasticEmbedding(vocabulary, width, config.padding_idx)
        stored = config.stored_positions or space.largest().number("sequence_length")
        self.positions = positions_of(config.positions, reference_width or width, stored, width)
        self.embedding_norm = ElasticLayerNorm(width, config.norm_eps) if config.embedding_norm else None
        kinds = GENES.layer_attention(space, config.linear, config.linear_length)
        form = LayerForm(config.norm_first, config.activation, config.norm_eps)
        self.layers: list[ElasticEncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticEncoderLayer(width, ffn, qkv, len(space.choices), config.mos, form, attention)
            for (ffn, qkv), attention in zip(GENES.widest_layers(space), kinds, strict=True)
        )
        check_order(config.layer_order, len(self.layers))
        self.norm = ElasticLayerNorm(width, config.norm_eps) if config.norm_first else None
        self.head = ElasticTokenHead(width, vocabulary, config.norm_eps)
        self.classification_heads: dict[str, ElasticClassHead] = nn.ModuleDict()  # type: ignore[assignment]
        if config.pooler_activation not in ACTIVATIONS:
            raise unknown_choice("activation of classification heads", config.pooler_activation, ACTIVATIONS)
        for head in config.classification_heads:
            self._build_head(head)

    def set_classification_head(self, name: str, classes: int, inner: int | None = None) -> None:
        """Add a classifier of sequences, with random weights, or put it in the place of that of the same name.

        Raises:
            ConfigError: a name with dots, or no classes.
        """
        head = ClassHead(name, classes, inner or self.embed_dim)
        others = tuple(each for each in self.config.classification_heads if each.name != name)
        self.config = replace(self.config, classification_heads=(*others, head))
        self._build_head(head)

    def _build_head(self, head: ClassHead) -> None:
        built = ElasticClassHead(self.embed_dim, head.inner, head.classes)
        self.classification_heads[head.name] = built.to(self.embedding.weight)

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
        """The weights of ``architecture``: slices of the supernet's, experts mixed by the routers.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        encoding = torch.from_numpy(self.space.encode(architecture)[0])
        experts = self.config.mos.kind != "none"
        routed = encoding.to(self.reference_width.device, non_blocking=True) if experts else None
        width = architecture.number("embed_dim")
        table = self.embedding.select(width)
        return Subnet(
            table,
            table if self.config.share_embeddings else self.output.select(width),
            None if self.embedding_norm is None else self.embedding_norm.select(width),
            tuple(
                layer.select(width, genes.ffn_dim, genes.heads, routed, genes.attention, genes.qkv_dim)
                for layer, genes in zip(self.kept_layers(architecture), transformer_layers(architecture), strict=True)
            ),
            None if self.norm is None else self.norm.select(width),
            self.head.select(width),
            {name: head.select(width) for name, head in self.classification_heads.items()},
            architecture,
        )

    def kept_layers(self, architecture: Architecture) -> list[ElasticEncoderLayer]:
        """The layers that an architecture runs, in the order in which it does."""
        return kept_layers(self.layers, architecture.number("layers"), self.config.layer_order)

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``MaskedLMNet`` built from ``SearchSpace.of(architecture)`` without experts."""
        return static_state(self, architecture)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Positions and dropout depend on the supernet's width, which travels with the weights."""
        width = state_dict.get(prefix + "reference_width")
        if width is not None:
            if width.ndim:
                raise CheckpointError(f"reference_width has shape {tuple(width.shape)}, expected one number")
            self.positions.resize(int(width))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def _dropouts(self, features: int) -> Dropouts:
        if not self.training:
            return Dropouts()
        config, scale = self.config, features / self.positions.width
        return Dropouts(config.dropout * scale, config.attention_dropout, config.activation_dropout * scale)

    def _positions(self, mask: Tensor | None, length: int, features: int) -> Tensor:
        """Vectors (T, C) of the tokens, or (B, T, C) where padding is left out of the count; any at padding."""
        first, positions = self.config.first_position, self.positions
        if mask is None:
            vectors: Tensor = positions(first + length, features)
            return vectors[first:]
        at = (mask.cumsum(1, dtype=torch.long) - 1).clamp(min=0) + first
        if not isinstance(positions, StoredPositions):
            return F.embedding(at, positions(first + length, features))
        if first + length > len(positions.table) and not is_exporting():
            # Padding may be what is too long: the only case in which the host has to read what the tokens count.
            positions(int(at.max()) + 1, features)
        return F.embedding(at, positions.table[:, :features])

    def embed(self, subnet: Subnet, tokens: Tensor, mask: Tensor | None, drop: Dropouts) -> Tensor:
        """Tokens (B, T) to what the first layer reads (B, T, C); ``mask`` (B, T) is True at tokens."""
        table, scale = subnet.embedding, self.config.embedding_scale
        x = F.embedding(tokens, table, self.config.padding_idx)
        x = x * (math.sqrt(table.shape[1]) if scale is None else scale)
        x = x + self._positions(mask, tokens.shape[1], table.shape[1]).to(table.dtype)
        if subnet.embedding_norm is not None:
            x = norm(x, subnet.embedding_norm)
        return F.dropout(x, drop.residual) if drop.residual else x

    def encode(self, subnet: Subnet, tokens: Tensor, padded: bool = True) -> Tensor:
        """``tokens`` (B, T), padded anywhere, to features (B, T, C), which mean nothing at padding.

        ``padded=False`` promises that there is no padding.

        Raises:
            ConfigError: a sequence is longer than positions are stored for, or than its attention was made for.
        """
        mask = tokens.ne(self.config.padding_idx) if padded else None
        drop = self._dropouts(subnet.embedding.shape[1])
        x = self.embed(subnet, tokens, mask, drop)
        if mask is not None:
            x = x.masked_fill(~mask[..., None], 0)
        keys = None if mask is None else mask[:, None, None]
        for layer, weights in zip(self.layers, subnet.layers, strict=False):
            x = layer(x, weights, keys, drop)
        return x if subnet.norm is None else norm(x, subnet.norm)

    def predict(self, subnet: Subnet, features: Tensor) -> Tensor:
        """Features (.., C), of all tokens or of some, to the logits of tokens (.., V)."""
        return token_logits(features, subnet.head, subnet.output, self.config.activation)

    def classify(self, subnet: Subnet, features: Tensor, head: str) -> Tensor:
        """Features (B, T, C) to the logits (B, K) of a classification head.

        Raises:
            UnknownChoiceError: no such head.
        """
        if head not in subnet.classification_heads:
            raise unknown_choice("classification head", head, subnet.classification_heads)
        dropout = self.config.pooler_dropout if self.training else 0.0
        return class_logits(features, subnet.classification_heads[head], self.config.pooler_activation, dropout)

    def forward(self, subnet: Subnet, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) of ``tokens`` (B, T)."""
        return self.predict(subnet, self.encode(subnet, tokens))
