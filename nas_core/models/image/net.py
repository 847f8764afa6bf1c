"""The image network: an elastic vision transformer with a kind of attention per layer, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from the space of one
architecture). It computes with a ``VisionSubnet``, the weights of one architecture; the module itself remembers none.

Shapes: B batch, N tokens, C channels, K classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nas_core.errors import ConfigError
from nas_core.layers import ElasticLayerNorm, ElasticLinear
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.linear import prefix
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.layers.vision import ElasticPatchEmbedding, ElasticVisionLayer, resize_positions
from nas_core.layers.weights import NormWeights, named_tensors
from nas_core.models.image.genes import attention_options, check_image_space, widest_layers
from nas_core.models.image.subnet import VisionConfig, VisionSubnet
from nas_core.models.static import copied, routed, routed_features, selected
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import image_layers


class VisionNet(nn.Module):
    """Vision transformer of a search space with the genes of :mod:`nas_core.space.image`.

    As in mFormer's code: patches by one convolution, a class token, learned positions, embeddings times sqrt(C), layers
    with the norm first, a last norm, and a linear classifier on the mean of the patches' tokens.

    Raises:
        SpaceError: the space lacks a gene that this network has.
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
        linear = LinearAttention(None, config.normalize, config.linear_form)
        own = {linear.name: linear}
        self.prefix_tokens = int(config.class_token) + config.registers
        self.patch_embed = ElasticPatchEmbedding(config.channels, self.embed_dim, self.patch_size)
        std = self.embed_dim**-0.5
        self.class_token = nn.Parameter(torch.randn(self.embed_dim) * std) if config.class_token else None
        registers = config.registers
        self.registers = nn.Parameter(torch.randn(registers, self.embed_dim) * std) if registers else None
        self.positions = nn.Parameter(torch.randn(math.prod(self.grid) + self.prefix_tokens, self.embed_dim) * std)
        self.embedding_norm = ElasticLayerNorm(self.embed_dim, config.norm_eps) if config.norm_embedding else None
        form, features = LayerForm(True, config.activation, config.norm_eps), routed_features(space, config.mos)
        self.layers: list[ElasticVisionLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticVisionLayer(
                self.embed_dim, ffn, qkv, features, config.mos, [own.get(k, k) for k in kinds], relative, form
            )
            for (ffn, qkv), kinds in zip(widest_layers(space), attention_options(space), strict=True)
        )
        check_order(config.layer_order, len(self.layers))
        self.norm = ElasticLayerNorm(self.embed_dim, config.norm_eps)
        self.head = ElasticLinear(self.embed_dim, config.classes) if config.classes else None
        self.checkpointing = False

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture, known: bool = False) -> VisionSubnet:
        """The weights of ``architecture``: slices of the supernet's, experts mixed by the routers. ``known`` promises
        that the architecture was made by the space, which saves a check that exporters cannot follow.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        architecture = architecture if known else self.space.validate(architecture)
        mos, encoding = self.config.mos, None
        if mos.kind != "none":
            encoding = routed(self.space, architecture, mos, self.positions.device)
        width = architecture.number("embed_dim")
        return VisionSubnet(
            self.patch_embed.select(width),
            None if self.class_token is None else prefix(self.class_token, width),
            None if self.registers is None else prefix(self.registers, len(self.registers), width),
            prefix(self.positions, len(self.positions), width),
            None if self.embedding_norm is None else self.embedding_norm.select(width),
            tuple(
                layer.select(width, genes.ffn_dim, genes.heads, genes.qkv_dim, genes.attention, encoding)
                for layer, genes in zip(self.kept_layers(architecture), image_layers(architecture), strict=False)
            ),
            self.norm.select(width),
            None if self.head is None else self.head.select(width, len(self.head.bias)),
            architecture,
        )

    def kept_layers(self, architecture: Architecture) -> list[ElasticVisionLayer]:
        """The layers that an architecture runs, in the order in which it does."""
        return kept_layers(self.layers, architecture.number("layers"), self.config.layer_order)

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``VisionNet`` built from the space of that architecture without experts."""
        return copied(named_tensors(selected(self, architecture)))

    # -- other classes, other sizes ------------------------------------------------------------------------------------

    def set_classifier(self, classes: int, pool: str | None = None) -> None:
        """A new classifier (none for 0 classes), and what it reads, one of ``POOLS``; default: as before."""
        self.config = replace(self.config, classes=classes, pool=self.config.pool if pool is None else pool)
        self.head = ElasticLinear(self.embed_dim, classes).to(self.positions.device) if classes else None

    def set_image_size(self, size: tuple[int, int]) -> None:
        """Store positions for images of this height and width, interpolated from those there are."""
        grid = self._grid_of(size)
        with torch.no_grad():
            self.positions = nn.Parameter(self._resized(self.positions, self.grid, grid).clone())
        self.config, self.grid = replace(self.config, image_size=size), grid

    def _grid_of(self, size: tuple[int, int]) -> tuple[int, int]:
        if min(size) < 1 or size[0] % self.patch_size or size[1] % self.patch_size:
            raise ConfigError(
                f"images of {size[0]} x {size[1]} pixels do not divide into patches of {self.patch_size}; resize them"
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
        """Positions of another square grid are interpolated."""
        name = prefix + "positions"
        stored = state_dict.get(name)
        if stored is not None and stored.ndim == 2 and len(stored) != len(self.positions):
            side = math.isqrt(max(len(stored) - self.prefix_tokens, 0))
            if side and side * side == len(stored) - self.prefix_tokens:
                state_dict[name] = self._resized(stored, (side, side), self.grid)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def embed(self, subnet: VisionSubnet, images: Tensor, drop: Dropouts) -> tuple[Tensor, tuple[int, int]]:
        """Tokens (B, N, C) before the first layer, and the grid of patches."""
        if images.ndim != 4 or images.shape[1] != self.config.channels:
            raise ConfigError(f"images {tuple(images.shape)}; expected (B, {self.config.channels}, height, width)")
        grid = self._grid_of((images.shape[2], images.shape[3]))
        x = F.conv2d(images, *subnet.patch_embed, stride=self.patch_size).flatten(2).transpose(1, 2)
        positions = self._resized(subnet.positions, self.grid, grid)
        own = [token for token in (subnet.class_token, subnet.registers) if token is not None]
        if own:
            x = torch.cat([*(token.to(x.dtype).expand(x.shape[0], _rows(token), -1) for token in own), x], 1)
        scale = self.config.embedding_scale
        x = (x + positions) * (math.sqrt(x.shape[2]) if scale is None else scale)
        x = F.dropout(x, drop.residual) if drop.residual else x
        return (x if subnet.embedding_norm is None else norm(x, subnet.embedding_norm)), grid

    def outputs(self, subnet: VisionSubnet, images: Tensor) -> Iterator[tuple[Tensor, tuple[int, int]]]:
        """After each layer: tokens (B, N, C) without the last norm, and the grid of patches."""
        config = self.config
        drop = Dropouts(config.dropout, config.attention_dropout, config.activation_dropout)
        drop = drop if self.training else Dropouts()
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
        """``images`` (B, channels, height, width) to normalised tokens (B, N, C), the class token first.

        Raises:
            ConfigError: images of another number of channels, or that do not divide into patches.
        """
        x = images
        for x, _ in self.outputs(subnet, images):  # noqa: B007  only the last is used
            pass
        return self.normalised(subnet, x)

    def normalised(self, subnet: VisionSubnet, tokens: Tensor) -> Tensor:
        """Tokens (B, N, C) after the last norm, unless that one reads what is pooled of them."""
        return tokens if self.config.norm_after_pool else norm(tokens, subnet.norm)

    def pooled(self, tokens: Tensor, weights: NormWeights) -> Tensor:
        """What :meth:`features` gives to what the classifier reads: (B, C), or all tokens. ``weights`` are those of the
        last norm."""
        x = self.pool(tokens)
        return norm(x, weights) if self.config.norm_after_pool else x

    def pool(self, tokens: Tensor) -> Tensor:
        """Tokens (B, N, C) to one vector (B, C), or all of them."""
        pool, patches = self.config.pool, tokens[:, self.prefix_tokens :]
        if pool == "avg":
            return patches.mean(1)
        if pool == "max":
            return patches.amax(1)
        if pool == "avgmax":
            return (patches.mean(1) + patches.amax(1)) / 2
        return tokens[:, 0] if pool == "token" else tokens

    def forward(self, subnet: VisionSubnet, images: Tensor) -> Tensor:
        """``images`` (B, channels, height, width) to logits (B, K), or to pooled features (B, C) where there is no
        classifier."""
        x = self.pooled(self.features(subnet, images), subnet.norm)
        return x if subnet.head is None else F.linear(x, *subnet.head)


def _rows(token: Tensor) -> int:
    """How many tokens a tensor (C,) or (number, C) holds."""
    return 1 if token.ndim == 1 else len(token)
