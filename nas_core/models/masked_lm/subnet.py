"""The settings of a masked language model that are not searched, and the weights of one architecture.

Shapes: C channels, V vocabulary, K classes, I hidden units of a classification head.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.transformer import EncoderLayerWeights
from nas_core.layers.weights import Affine, NormWeights
from nas_core.space import Architecture


@dataclass(frozen=True)
class ClassHead:
    """A classifier of whole sequences, which reads their first token."""

    name: str
    """Under which its weights are stored."""
    classes: int
    """K; 1 for a regression."""
    inner: int
    """I; a network of fewer channels has as many hidden units as channels."""

    def __post_init__(self) -> None:
        if not self.name or "." in self.name or min(self.classes, self.inner) < 1:
            raise ConfigError(
                f"classification head {self.name!r} of {self.classes} classes and {self.inner} hidden units; expected a"
                " name without dots, and numbers above 0"
            )


@dataclass(frozen=True, kw_only=True)
class MaskedLMConfig:
    """Everything about a masked language model that is not searched; the defaults are RoBERTa's."""

    share_embeddings: bool = True
    """Input tokens and predicted ones share one table."""
    dropout: float = 0.0
    """After embeddings and sublayers; scaled by a subnet's width over the supernet's, as in HAT."""
    attention_dropout: float = 0.0
    """On attention probabilities; not scaled."""
    activation_dropout: float = 0.0
    """On hidden units of feed-forward layers; scaled like ``dropout``."""
    norm_first: bool = False
    """Layer norm before each sublayer instead of after it, and one after the last layer."""
    embedding_norm: bool = True
    """Layer norm after the sum of token and position."""
    norm_eps: float = 1e-5
    """Added to the variance by layer norms."""
    activation: str = "gelu"
    """Function of the hidden units of feed-forward layers and of the head that predicts tokens, one of
    :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "learned"
    """One of :data:`nas_core.layers.positions.POSITIONS`."""
    stored_positions: int | None = None
    """How many positions are stored, where they are; default: the space's ``sequence_length``."""
    first_position: int = 0
    """The position of the first token."""
    embedding_scale: float | None = 1.0
    """By what embeddings of tokens are multiplied; None: the square root of the subnet's width, as in HAT."""
    layer_order: tuple[int, ...] = ()
    """Layers, the one that shallower networks keep longest first; default: they keep the first ones."""
    padding_idx: int = 1
    """Index of the padding token."""
    classification_heads: tuple[ClassHead, ...] = ()
    """Classifiers of whole sequences."""
    pooler_activation: str = "tanh"
    """Function of their hidden units."""
    pooler_dropout: float = 0.0
    """On what they read and on their hidden units; not scaled."""
    joined: bool = False
    """Layers of unequal width have one matrix between two of them, as in a static network, not a map out of the one and
    one into the other."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    """Experts of the feed-forward layers."""
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention; its ``max_length`` is ``linear_length``."""
    linear_length: int | None = None
    """M of linear attention, and of any that is scaled; None: each sequence's own length."""

    def static(self) -> MaskedLMConfig:
        """The settings of a static network: no experts, one matrix between layers, and layers that were put in order
        when it was taken out."""
        return replace(self, mos=MoSConfig(), layer_order=(), joined=True)


class TokenHeadWeights(NamedTuple):
    """What lies between features and the table of tokens."""

    dense: Affine
    """(C, C)"""
    norm: NormWeights
    bias: Tensor
    """(V,), added to the logits."""


class ClassHeadWeights(NamedTuple):
    """A classifier of whole sequences."""

    dense: Affine
    """(I, C)"""
    out_proj: Affine
    """(K, I)"""


class Subnet(NamedTuple):
    """The weights of one architecture; field names are the static model's parameter names."""

    embedding: Tensor
    """(V, C)"""
    output: Tensor
    """(V, C): the same table where it is shared."""
    embedding_norm: NormWeights | None
    joints: tuple[Affine, ...]
    """Before, between and behind layers of unequal width; none where all are as wide as the network."""
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights | None
    head: TokenHeadWeights
    classification_heads: dict[str, ClassHeadWeights]
    architecture: Architecture
