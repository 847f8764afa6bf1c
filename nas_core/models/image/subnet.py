"""The settings of an image network that are not searched, and the weights of one architecture.

Shapes: N tokens, C channels, K classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers import MoSConfig
from nas_core.layers.transformer import EncoderLayerWeights
from nas_core.layers.weights import Affine, NormWeights
from nas_core.space import Architecture

POOLS = ("avg", "max", "avgmax", "token", "")
"""What the classifier reads: of the patches' tokens the mean, the largest of each channel, or the mean of both; the
class token; or every token."""


@dataclass(frozen=True, kw_only=True)
class VisionConfig:
    """Everything about an image network that is not searched."""

    classes: int = 10
    """K; 0: no classifier."""
    channels: int = 3
    """Channels of an image."""
    image_size: tuple[int, int] | None = None
    """Height and width in pixels for which positions are stored; default: the space's."""
    class_token: bool = True
    """A learned token before the patches'. With ``avg`` it takes part in attention only."""
    registers: int = 0
    """Learned tokens between the class token and the patches', which only take part in attention (Darcet et al. 2024,
    "Vision Transformers Need Registers")."""
    pool: str = "avg"
    """One of :data:`POOLS`."""
    normalize: str = "denominator"
    """How linear attention is normalised: denominator, rms or layer."""
    linear_form: str = "auto"
    """How linear attention is computed, with the same results: one of its FORMS."""
    dropout: float = 0.0
    """After the embedding and each sublayer."""
    attention_dropout: float = 0.0
    """On the weights of softmax attention."""
    activation_dropout: float = 0.0
    """On hidden units of feed-forward layers."""
    drop_path: float = 0.0
    """Probability that the last layer's sublayers are skipped for an image; it rises linearly from 0."""
    activation: str = "relu"
    """Function of the hidden units of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    norm_eps: float = 1e-5
    """Added to the variance by layer norms."""
    embedding_scale: float | None = None
    """By what tokens are multiplied before the first layer; default: the square root of the subnet's width."""
    smooth_positions: bool = False
    """For larger images, interpolate positions as timm does; smaller ones are served alike."""
    norm_embedding: bool = False
    """A layer norm between the embedding and the first layer, as in CLIP."""
    norm_after_pool: bool = False
    """The last layer norm reads what was pooled, not each token before."""
    layer_order: tuple[int, ...] = ()
    """Layers, the one that shallower networks keep longest first; default: they keep the first ones."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    """Experts of the feed-forward layers."""

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise unknown_choice("pooling (global_pool)", self.pool, [pool or "'' (every token)" for pool in POOLS])
        if self.pool == "token" and not self.class_token:
            raise ConfigError("pooling 'token' without a class token; use 'avg' or switch the class token on")
        if self.registers < 0:
            raise ConfigError(f"{self.registers} register tokens; expected 0 or more")

    def static(self) -> VisionConfig:
        """The settings of a static network: no experts, and layers that were put in order when it was taken out."""
        return replace(self, mos=MoSConfig(), layer_order=())


class VisionSubnet(NamedTuple):
    """The weights of one architecture; field names are the static model's parameter names."""

    patch_embed: Affine
    class_token: Tensor | None
    """``(C,)``"""
    registers: Tensor | None
    """``(number of registers, C)``"""
    positions: Tensor
    """``(N, C)``, those of the class token and the registers first."""
    embedding_norm: NormWeights | None
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights
    head: Affine | None
    architecture: Architecture
