"""Elastic bidirectional encoder with token head and sequence classifiers, with or without experts.

Shapes: B batch, T length, C channels, V vocabulary, K classes, I hidden units of a classification head.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError, check_choice
from nas_core.layers import ElasticLinear, MoSConfig
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.bottleneck import ElasticBottlenecks, Joints
from nas_core.layers.depth import kept_layers
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.linear import ElasticLayerNorm
from nas_core.layers.positions import StoredPositions
from nas_core.layers.torch_modes import is_exporting
from nas_core.layers.transformer import Dropouts, EncoderLayerWeights, LayerForm, norm
from nas_core.layers.weights import Affine, NormWeights
from nas_core.models.masked_lm.genes import GENES, check_masked_lm_space, widest_hidden, widest_layers
from nas_core.models.stack import TokenStack
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import joint_sizes, layer_widths, network_width


@dataclass(frozen=True)
class ClassHead:
    """Settings of a sequence classifier, whose input is the first token."""

    name: str
    classes: int
    """Number of classes, or 1 for a regression."""
    inner: int
    """Number of hidden units I, at most C."""

    def __post_init__(self) -> None:
        if not self.name or "." in self.name or min(self.classes, self.inner) < 1:
            raise ConfigError(
                f"classification head is {self.name!r} with {self.classes} classes and {self.inner} hidden units;"
                " expected a name without dots, and numbers above 0"
            )


@dataclass(frozen=True, kw_only=True)
class MaskedLMConfig:
    """Settings of a masked language model that are not searched. Defaults are RoBERTa's."""

    share_embeddings: bool = True
    """Use one table for input embeddings and output projection."""
    dropout: float = 0.0
    """Dropout after embeddings and sublayers, scaled with the subnet's width as in HAT."""
    attention_dropout: float = 0.0
    """Dropout of attention weights."""
    activation_dropout: float = 0.0
    """Dropout of hidden units of feed-forward layers, scaled like ``dropout``."""
    norm_first: bool = False
    """True for layer norm before each sublayer and after the last layer, False for after each sublayer."""
    embedding_norm: bool = True
    """Apply a layer norm after the sum of token and position embeddings."""
    norm_eps: float = 1e-5
    activation: str = "gelu"
    """Activation of feed-forward layers and token head, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "learned"
    """One of :data:`nas_core.layers.positions.POSITIONS`."""
    stored_positions: int | None = None
    """Number of stored positions. Default: the space's ``sequence_length``."""
    first_position: int = 0
    embedding_scale: float | None = 1.0
    """Factor of embeddings. None means the square root of the subnet's width, as in HAT."""
    layer_order: tuple[int, ...] = ()
    """Layer indices by decreasing importance. By default, shallower networks keep the first layers."""
    padding_idx: int = 1
    classification_heads: tuple[ClassHead, ...] = ()
    pooler_activation: str = "tanh"
    """Activation of classification heads."""
    pooler_dropout: float = 0.0
    """Dropout of inputs and hidden units of classification heads."""
    joined: bool = False
    """Use one matrix between layers of different widths, as in a static network."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention. ``max_length`` is replaced by ``linear_length``."""
    linear_length: int | None = None
    """Maximum sequence length of bounded attention, such as linear. None means each sequence's own length."""

    def static(self) -> MaskedLMConfig:
        """Return the settings of an extracted network."""
        return replace(self, mos=MoSConfig(), layer_order=(), joined=True)


class TokenHeadWeights(NamedTuple):
    """Weights of the token head, without the output table."""

    dense: Affine
    """(C, C)"""
    norm: NormWeights
    bias: Tensor
    """(V,)"""


class ClassHeadWeights(NamedTuple):
    """Weights of a sequence classifier."""

    dense: Affine
    """(I, C)"""
    out_proj: Affine
    """(K, I)"""


class Subnet(NamedTuple):
    """Weights of one architecture, with the parameter names of the static model."""

    embedding: Tensor
    """(V, C)"""
    output: Tensor
    """``(V, C)``, the same tensor as ``embedding`` if shared."""
    embedding_norm: NormWeights | None
    joints: tuple[Affine, ...]
    """Linear maps around layers of different widths."""
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights | None
    head: TokenHeadWeights
    classification_heads: dict[str, ClassHeadWeights]
    architecture: Architecture


class ElasticTokenHead(nn.Module):
    """Token head: linear layer, activation and layer norm, before the output projection."""

    def __init__(self, features: int, vocabulary: int, norm_eps: float) -> None:
        super().__init__()
        self.dense = ElasticLinear(features, features)
        self.norm = ElasticLayerNorm(features, norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def select(self, features: int) -> TokenHeadWeights:
        return TokenHeadWeights(self.dense.select(features, features), self.norm.select(features), self.bias)


def token_logits(x: Tensor, weights: TokenHeadWeights, table: Tensor, activation: str) -> Tensor:
    """Compute logits ``(..., V)`` of features ``(..., C)``."""
    x = norm(ACTIVATIONS[activation](F.linear(x, *weights.dense)), weights.norm)
    return F.linear(x, table, weights.bias)


class ElasticClassHead(nn.Module):
    """Sequence classifier with one hidden layer of at most C units."""

    def __init__(self, features: int, inner: int, classes: int) -> None:
        super().__init__()
        self.inner, self.classes = min(inner, features), classes
        self.dense = ElasticLinear(features, self.inner)
        self.out_proj = ElasticLinear(self.inner, classes)

    def select(self, features: int) -> ClassHeadWeights:
        inner = min(self.inner, features)
        return ClassHeadWeights(self.dense.select(features, inner), self.out_proj.select(inner, self.classes))


def class_logits(x: Tensor, weights: ClassHeadWeights, activation: str, dropout: float = 0.0) -> Tensor:
    """Compute logits ``(B, K)`` from the first token of features ``(B, T, C)``."""
    x = x[:, 0]
    x = ACTIVATIONS[activation](F.linear(F.dropout(x, dropout) if dropout else x, *weights.dense))
    return F.linear(F.dropout(x, dropout) if dropout else x, *weights.out_proj)


class MaskedLMNet(TokenStack):
    """Masked language model for search spaces of :mod:`nas_core.space.masked_lm` or :mod:`nas_core.space.bert`.

    Layers of different widths are connected by linear maps (:mod:`nas_core.layers.bottleneck`).
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
        check_choice("activation of classification heads", config.pooler_activation, ACTIVATIONS)
        for head in config.classification_heads:
            self._build_head(head)

    def set_classification_head(self, name: str, classes: int, inner: int | None = None) -> None:
        """Add a random sequence classifier with ``inner`` hidden units (default: C), or replace that with this name."""
        head = ClassHead(name, classes, inner or self.embed_dim)
        others = tuple(other for other in self.config.classification_heads if other.name != name)
        self.config = replace(self.config, classification_heads=(*others, head))
        self._build_head(head)

    def _build_head(self, head: ClassHead) -> None:
        module = ElasticClassHead(self.embed_dim, head.inner, head.classes)
        self.classification_heads[head.name] = module.to(self.embedding.weight)

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
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
        layers = kept_layers(range(len(self.layers)), architecture.number("layers"), self.config.layer_order)
        return self.joints.select(layers, layer_widths(architecture))

    # -- computing -----------------------------------------------------------------------------------------------------

    def _positions(self, mask: Tensor | None, length: int, features: int) -> Tensor:
        first, positions = self.config.first_position, self.positions
        if mask is None:
            vectors: Tensor = positions(first + length, features)
            return vectors[first:]
        indices = (mask.cumsum(1, dtype=torch.long) - 1).clamp(min=0) + first
        if not isinstance(positions, StoredPositions):
            return F.embedding(indices, positions(first + length, features))
        if first + length > len(positions.table) and not is_exporting():
            # only padding may be too long; counting the tokens synchronises with the device
            positions(int(indices.max()) + 1, features)
        return F.embedding(indices, positions.table[:, :features])

    def embed(self, subnet: Subnet, tokens: Tensor, mask: Tensor | None, drop: Dropouts) -> Tensor:
        """Compute the inputs ``(B, T, C)`` of the first layer. ``mask`` ``(B, T)`` is True at tokens."""
        table = subnet.embedding
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(table)
        x = x + self._positions(mask, tokens.shape[1], table.shape[1]).to(table.dtype)
        if subnet.embedding_norm is not None:
            x = norm(x, subnet.embedding_norm)
        return F.dropout(x, drop.residual) if drop.residual else x

    def encode(self, subnet: Subnet, tokens: Tensor, padded: bool = True) -> Tensor:
        """Compute features ``(B, T, C)`` of ``tokens`` ``(B, T)``, with padding anywhere.

        Features at padding are undefined. Set ``padded`` to False if there is no padding.
        """
        mask = tokens.ne(self.config.padding_idx) if padded else None
        drop = Dropouts.of(self, subnet.embedding.shape[1] / self.positions.width)
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
        """Compute token logits ``(..., V)`` of features ``(..., C)``."""
        return token_logits(features, subnet.head, subnet.output, self.config.activation)

    def classify(self, subnet: Subnet, features: Tensor, head: str) -> Tensor:
        """Compute the logits ``(B, K)`` of a classification head for features ``(B, T, C)``."""
        check_choice("classification head", head, subnet.classification_heads)
        dropout = self.config.pooler_dropout if self.training else 0.0
        return class_logits(features, subnet.classification_heads[head], self.config.pooler_activation, dropout)

    def logits(self, subnet: Subnet, features: Tensor, head: str | None = None) -> Tensor:
        return self.predict(subnet, features) if head is None else self.classify(subnet, features, head)

    def forward(self, subnet: Subnet, tokens: Tensor) -> Tensor:
        """Compute logits ``(B, T, V)`` of ``tokens`` ``(B, T)``."""
        return self.predict(subnet, self.encode(subnet, tokens))


def length_limit(space: SearchSpace, config: MaskedLMConfig) -> int | None:
    """Return the maximum length of attention, or None if unlimited."""
    return config.linear_length if GENES.bounded(space) else None
