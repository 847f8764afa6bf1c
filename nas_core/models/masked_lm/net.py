"""The masked language model: an elastic bidirectional encoder with RoBERTa's heads, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from ``SearchSpace.of``, the space
of one architecture). It computes with a ``Subnet``, the weights of one architecture; the module itself remembers none.

Shapes: B batch, T length, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import unknown_choice
from nas_core.layers import ElasticLayerNorm
from nas_core.layers.bottleneck import ElasticBottlenecks, Joints
from nas_core.layers.depth import kept_layers
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.torch_modes import is_exporting
from nas_core.layers.positions import StoredPositions
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.layers.weights import Affine, named_tensors
from nas_core.models.masked_lm.genes import GENES, check_masked_lm_space, widest_hidden, widest_layers
from nas_core.models.masked_lm.heads import ElasticClassHead, ElasticTokenHead, class_logits, token_logits
from nas_core.models.masked_lm.subnet import ClassHead, MaskedLMConfig, Subnet
from nas_core.models.stack import TokenStack
from nas_core.models.static import copied, selected
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import joint_sizes, layer_widths, network_width


class MaskedLMNet(TokenStack):
    """Masked language model of a search space with the genes of :mod:`nas_core.space.masked_lm` or of
    :mod:`nas_core.space.bert`.

    As fairseq's RoBERTa: tokens and learned positions, a layer norm, encoder layers that read all tokens but padding,
    and a head that predicts tokens. ``select(architecture)`` gives the weights of one architecture, mixing experts
    once; ``encode``, ``predict`` and ``classify`` compute with them. Where layers differ in width, linear maps lead
    into each and out of it (:mod:`nas_core.layers.bottleneck`).

    Raises:
        SpaceError: the space lacks a gene that this network has.
    """

    config: MaskedLMConfig

    def __init__(
        self,
        space: SearchSpace,
        vocabulary: int,
        config: MaskedLMConfig | None = None,
        reference_width: int | None = None,
    ) -> None:
        config = config or MaskedLMConfig()
        check_masked_lm_space(space)
        stored = config.stored_positions or space.largest().number("sequence_length")
        super().__init__(space, vocabulary, config, reference_width, stored, not config.share_embeddings)
        width = self.embed_dim
        self.embedding_norm = ElasticLayerNorm(width, config.norm_eps) if config.embedding_norm else None
        kinds = GENES.layer_attention(space, config.linear, config.linear_length)
        form = LayerForm(config.norm_first, config.activation, config.norm_eps)
        hidden = widest_hidden(space)
        self._build_layers(widest_layers(space), kinds, form, widths=hidden)
        sizes = joint_sizes(space.largest())
        self.joints: ElasticBottlenecks | Joints | None = None
        if sizes:
            self.joints = Joints(sizes) if config.joined else ElasticBottlenecks(width, hidden)
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
        layers, width = self._select_layers(architecture), network_width(architecture)
        return Subnet(
            *self._select_tables(width),
            None if self.embedding_norm is None else self.embedding_norm.select(width),
            self._select_joints(architecture),
            layers,
            None if self.norm is None else self.norm.select(width),
            self.head.select(width),
            {name: head.select(width) for name, head in self.classification_heads.items()},
            architecture,
        )

    def _select_joints(self, architecture: Architecture) -> tuple[Affine, ...]:
        if self.joints is None:
            return ()
        kept = kept_layers(range(len(self.layers)), architecture.number("layers"), self.config.layer_order)
        return self.joints.select(kept, layer_widths(architecture))

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``MaskedLMNet`` built from ``SearchSpace.of(architecture)`` without experts."""
        subnet = selected(self, architecture)
        rest = named_tensors(subnet._replace(embedding=None, output=None))
        return copied((*rest, *self._tables_of(subnet).items(), ("reference_width", self.reference_width)))

    # -- computing -----------------------------------------------------------------------------------------------------

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
        table = subnet.embedding
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(table)
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
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x = F.linear(x, *subnet.joints[index]) if subnet.joints else x
            x = layer(x, weights, keys, drop)
        x = F.linear(x, *subnet.joints[-1]) if subnet.joints else x
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
