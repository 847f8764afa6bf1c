"""Elastic vision transformer with a choice of attention per layer, with or without experts.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers import ElasticLinear, MoSConfig
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.linear import ElasticLayerNorm, prefix
from nas_core.layers.transformer import Dropouts, EncoderLayerWeights, LayerForm, norm
from nas_core.layers.vision import ElasticPatchEmbedding, ElasticVisionLayer, resize_positions
from nas_core.layers.weights import Affine, NormWeights, named_tensors
from nas_core.models.genes import StackGenes
from nas_core.models.static import copy_state, encoding_size, router_encoding, select_eval
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_layers

_CONSTANT = ("image_size", "patch_size", "head_dim", "relative_clip")
GENES = StackGenes("an image network", ("layers", "embed_dim", "heads", *_CONSTANT), _CONSTANT, role="image")
"""Genes of each image architecture, in addition to ``ffn_dim`` or ``mlp_ratio``."""


def check_image_space(space: SearchSpace) -> None:
    if GENES.has(space, "ffn_dim"):
        GENES.check_gene(space, "ffn_dim")
    else:
        GENES.check_ratio(space, "mlp_ratio")
    for gene in GENES.names:
        GENES.check_gene(space, gene, 0 if gene == "relative_clip" else 1)
    GENES.check_attention(space)


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    if GENES.has(space, "ffn_dim"):
        return GENES.widest_layers(space)
    width = max(int(option) for option in GENES.options(space, "embed_dim")[0])
    ffn = [round(max(float(option) for option in row) * width) for row in GENES.per_layer(space, "mlp_ratio")]
    return list(zip(ffn, GENES.widest_queries(space), strict=True))


POOLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "avg": lambda tokens, patches: patches.mean(1),
    "max": lambda tokens, patches: patches.amax(1),
    "avgmax": lambda tokens, patches: (patches.mean(1) + patches.amax(1)) / 2,
    "token": lambda tokens, patches: tokens[:, 0],
    "": lambda tokens, patches: tokens,
}
"""Pooling before the classifier.

Mean, maximum per channel, or the mean of both, over patch tokens; the class token; or all tokens.
"""


@dataclass(frozen=True, kw_only=True)
class VisionConfig:
    """Settings of an image network that are not searched."""

    classes: int = 10
    """Number of classes, or 0 for no classifier."""
    channels: int = 3
    image_size: tuple[int, int] | None = None
    """Height and width of images in pixels. Default: the space's."""
    class_token: bool = True
    """Use a learned token before the patches."""
    registers: int = 0
    """Number of learned tokens after the class token (Darcet et al. 2024)."""
    pool: str = "avg"
    """One of :data:`POOLS`."""
    dropout: float = 0.0
    """Dropout after the embedding and each sublayer."""
    attention_dropout: float = 0.0
    """Dropout of softmax attention weights."""
    activation_dropout: float = 0.0
    """Dropout of hidden units of feed-forward layers."""
    drop_path: float = 0.0
    """Probability of skipping a sublayer for an image. It rises linearly from 0 to this value in the last layer."""
    activation: str = "relu"
    """Activation of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    norm_eps: float = 1e-5
    embedding_scale: float | None = None
    """Factor of tokens before the first layer. Default: the square root of the subnet's width."""
    smooth_positions: bool = False
    """Interpolate positions for larger images with antialiasing, as in timm."""
    norm_embedding: bool = False
    """Apply a layer norm after the embedding, as in CLIP."""
    norm_after_pool: bool = False
    """Apply the last layer norm after pooling."""
    layer_order: tuple[int, ...] = ()
    """Layer indices by decreasing importance. By default, shallower networks keep the first layers."""
    mos: MoSConfig = field(default_factory=MoSConfig)

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            raise unknown_choice("pooling (global_pool)", self.pool, [pool or "'' (every token)" for pool in POOLS])
        if self.pool == "token" and not self.class_token:
            raise ConfigError("pool is 'token' but class_token is False; use pool 'avg' or set class_token")

    def static(self) -> VisionConfig:
        """Return the settings of an extracted network."""
        return replace(self, mos=MoSConfig(), layer_order=())


class VisionSubnet(NamedTuple):
    """Weights of one architecture, with the parameter names of the static model."""

    patch_embed: Affine
    class_token: Tensor | None
    """``(C,)``"""
    registers: Tensor | None
    """``(registers, C)``"""
    positions: Tensor
    """``(N, C)``, class token and registers first."""
    embedding_norm: NormWeights | None
    layers: tuple[EncoderLayerWeights, ...]
    norm: NormWeights
    head: Affine | None
    architecture: Architecture


class VisionNet(nn.Module):
    """Vision transformer for search spaces with the genes of :mod:`nas_core.space.image`.

    As in mFormer, it has a class token, learned positions, pre-norm layers, and a classifier on the mean of patch
    tokens.
    """

    def __init__(self, space: SearchSpace, config: VisionConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or VisionConfig()
        check_image_space(space)
        self.space, largest = space, space.largest()
        self.embed_dim, self.patch_size = largest.number("embed_dim"), largest.number("patch_size")
        self.grid = self._grid_of(config.image_size or (largest.number("image_size"),) * 2)
        clip, head_dim = largest.number("relative_clip"), largest.number("head_dim")
        relative = (clip, head_dim) if clip else None
        kind_settings = {"linear": LinearAttention(None)}
        self.prefix_tokens = int(config.class_token) + config.registers
        self.patch_embed = ElasticPatchEmbedding(config.channels, self.embed_dim, self.patch_size)
        std = self.embed_dim**-0.5
        self.class_token = nn.Parameter(torch.randn(self.embed_dim) * std) if config.class_token else None
        registers = config.registers
        self.registers = nn.Parameter(torch.randn(registers, self.embed_dim) * std) if registers else None
        self.positions = nn.Parameter(torch.randn(math.prod(self.grid) + self.prefix_tokens, self.embed_dim) * std)
        self.embedding_norm = ElasticLayerNorm(self.embed_dim, config.norm_eps) if config.norm_embedding else None
        form, features = LayerForm(True, config.activation, config.norm_eps), encoding_size(space, config.mos)
        self.layers: list[ElasticVisionLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticVisionLayer(
                self.embed_dim, ffn, qkv, features, config.mos, [kind_settings.get(k, k) for k in kinds], relative, form
            )
            for (ffn, qkv), kinds in zip(widest_layers(space), GENES.attention_options(space), strict=True)
        )
        check_order(config.layer_order, len(self.layers))
        self.norm = ElasticLayerNorm(self.embed_dim, config.norm_eps)
        self.head = ElasticLinear(self.embed_dim, config.classes) if config.classes else None
        self.checkpointing = False

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture, validated: bool = False) -> VisionSubnet:
        """Return the weights of an architecture.

        Args:
            validated: skip validation, which exporters cannot trace.
        """
        architecture = architecture if validated else self.space.validate(architecture)
        mos = self.config.mos
        experts = mos.kind != "none"
        encoding = router_encoding(self.space, architecture, mos, self.positions.device) if experts else None
        width = architecture.number("embed_dim")
        return VisionSubnet(
            self.patch_embed.select(width),
            None if self.class_token is None else prefix(self.class_token, width),
            None if self.registers is None else prefix(self.registers, len(self.registers), width),
            prefix(self.positions, len(self.positions), width),
            None if self.embedding_norm is None else self.embedding_norm.select(width),
            tuple(
                layer.select(width, genes.ffn_dim, genes.heads, encoding, genes.attention, genes.qkv_dim)
                for layer, genes in zip(self.kept_layers(architecture), image_layers(architecture), strict=False)
            ),
            self.norm.select(width),
            None if self.head is None else self.head.select(width, len(self.head.bias)),
            architecture,
        )

    def kept_layers(self, architecture: Architecture) -> list[ElasticVisionLayer]:
        return kept_layers(self.layers, architecture.number("layers"), self.config.layer_order)

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """Return the state dict of the static subnet."""
        return copy_state(named_tensors(select_eval(self, architecture)))

    # -- other classes, other sizes ------------------------------------------------------------------------------------

    def set_classifier(self, classes: int, pool: str | None = None) -> None:
        """Replace the classifier, and optionally the pooling. 0 classes remove the classifier."""
        self.config = replace(self.config, classes=classes, pool=self.config.pool if pool is None else pool)
        self.head = ElasticLinear(self.embed_dim, classes).to(self.positions.device) if classes else None

    def set_image_size(self, size: tuple[int, int]) -> None:
        """Interpolate the positions for images of this height and width in pixels."""
        grid = self._grid_of(size)
        with torch.no_grad():
            self.positions = nn.Parameter(self._resized(self.positions, self.grid, grid).clone())
        self.config, self.grid = replace(self.config, image_size=size), grid

    def _grid_of(self, size: tuple[int, int]) -> tuple[int, int]:
        if min(size) < 1 or size[0] % self.patch_size or size[1] % self.patch_size:
            raise ConfigError(
                f"image size {size[0]} x {size[1]} is not divisible by patch size {self.patch_size}; resize the images"
            )
        return size[0] // self.patch_size, size[1] // self.patch_size

    def _resized(self, positions: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
        if old == new:
            return positions
        first = self.prefix_tokens
        return torch.cat(
            [positions[:first], resize_positions(positions[first:], old, new, self.config.smooth_positions)]
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Interpolate the positions of checkpoints for another image size."""
        name = prefix + "positions"
        stored = state_dict.get(name)
        if stored is not None and stored.ndim == 2 and len(stored) != len(self.positions):
            side = math.isqrt(max(len(stored) - self.prefix_tokens, 0))
            if side and side * side == len(stored) - self.prefix_tokens:
                state_dict[name] = self._resized(stored, (side, side), self.grid)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def embed(self, subnet: VisionSubnet, images: Tensor, drop: Dropouts) -> tuple[Tensor, tuple[int, int]]:
        """Return tokens ``(B, N, C)`` before the first layer, and the size of the patch grid."""
        if images.ndim != 4 or images.shape[1] != self.config.channels:
            raise ConfigError(
                f"images have shape {tuple(images.shape)}; expected (B, {self.config.channels}, height, width)"
            )
        grid = self._grid_of((images.shape[2], images.shape[3]))
        x = F.conv2d(images, *subnet.patch_embed, stride=self.patch_size).flatten(2).transpose(1, 2)
        positions = self._resized(subnet.positions, self.grid, grid)
        learned = [token for token in (subnet.class_token, subnet.registers) if token is not None]
        tokens = [token.to(x.dtype).view(-1, x.shape[2]).expand(x.shape[0], -1, -1) for token in learned]
        x = torch.cat([*tokens, x], 1) if tokens else x
        scale = self.config.embedding_scale
        x = (x + positions) * (math.sqrt(x.shape[2]) if scale is None else scale)
        x = F.dropout(x, drop.residual) if drop.residual else x
        return (x if subnet.embedding_norm is None else norm(x, subnet.embedding_norm)), grid

    def outputs(self, subnet: VisionSubnet, images: Tensor) -> Iterator[tuple[Tensor, tuple[int, int]]]:
        """Yield tokens ``(B, N, C)`` after each layer, and the size of the patch grid."""
        config = self.config
        drop = Dropouts.of(self)
        x, grid = self.embed(subnet, images, drop)
        depth = len(subnet.layers)
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            path = config.drop_path * index / max(depth - 1, 1) if self.training else 0.0
            if self.checkpointing and torch.is_grad_enabled():
                x = checkpoint(layer, x, weights, drop, path, use_reentrant=False)
            else:
                x = layer(x, weights, drop, path)
            yield x, grid

    def features(self, subnet: VisionSubnet, images: Tensor) -> Tensor:
        """Compute tokens ``(B, N, C)`` after the last layer norm, class token first."""
        x = images
        for x, _ in self.outputs(subnet, images):  # noqa: B007  only the last is used
            pass
        return self.normalised(subnet, x)

    def normalised(self, subnet: VisionSubnet, tokens: Tensor) -> Tensor:
        return tokens if self.config.norm_after_pool else norm(tokens, subnet.norm)

    def pooled(self, tokens: Tensor, weights: NormWeights) -> Tensor:
        """Pool the tokens of :meth:`features` for the classifier: ``(B, C)``, or all tokens.

        Args:
            weights: weights of the last layer norm.
        """
        x = POOLS[self.config.pool](tokens, tokens[:, self.prefix_tokens :])
        return norm(x, weights) if self.config.norm_after_pool else x

    def forward(self, subnet: VisionSubnet, images: Tensor) -> Tensor:
        """Compute logits ``(B, K)`` of images ``(B, channels, height, width)``."""
        x = self.pooled(self.features(subnet, images), subnet.norm)
        return x if subnet.head is None else F.linear(x, *subnet.head)
