"""The language model: an elastic decoder-only transformer, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from ``SearchSpace.of``, the space
of one architecture). It computes with a :class:`LanguageSubnet`, the weights of one architecture; the module itself
remembers no architecture.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import CheckpointError
from nas_core.layers import ElasticEmbedding, ElasticEncoderLayer, ElasticLayerNorm
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.positions import positions_of
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.models.language.genes import GENES, check_language_space
from nas_core.models.language.static import static_state
from nas_core.models.language.subnet import LanguageCache, LanguageConfig, LanguageSubnet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.stack import transformer_layers

__all__ = ["LanguageNet", "length_limit"]


class LanguageNet(nn.Module):
    """Decoder-only transformer over the genes of :mod:`nas_core.space.language`.

    ``select(architecture)`` gives the weights of one architecture, mixing experts once; ``forward`` (all positions),
    or ``start`` (or ``read``, of a prompt) and ``step`` (one position at a time) compute with them.

    Raises:
        SpaceError: the space lacks a gene that this network has.
    """

    reference_width: Tensor

    def __init__(
        self,
        space: SearchSpace,
        vocab: int,
        config: LanguageConfig | None = None,
        reference_width: int | None = None,
    ) -> None:
        super().__init__()
        self.space = space
        self.config = config = config or LanguageConfig()
        check_language_space(space)
        largest = space.largest()
        width, self.context_length = largest.number("embed_dim"), largest.number("context_length")
        self.embedding = ElasticEmbedding(vocab, width, config.padding_idx)
        self.output = None if config.tied_output else ElasticEmbedding(vocab, width, config.padding_idx)
        reference = reference_width or width
        self.register_buffer("reference_width", torch.tensor(reference))
        stored = config.first_position + self.context_length
        self.positions = positions_of(config.positions, reference, stored, width)
        kinds = GENES.layer_attention(space, config.linear, self.context_length)
        features, form = len(space.choices), LayerForm(config.norm_first, config.activation)
        self.layers: list[ElasticEncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticEncoderLayer(width, ffn, qkv, features, config.mos, form, attention, causal=True)
            for (ffn, qkv), attention in zip(GENES.widest_layers(space), kinds, strict=True)
        )
        check_order(config.layer_order, len(self.layers))
        self.norm = ElasticLayerNorm(width) if config.has_final_norm else None

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> LanguageSubnet:
        """The weights of ``architecture``: slices of the supernet's, experts mixed by the routers.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        encoding = torch.from_numpy(self.space.encode(architecture)[0])
        experts = self.config.mos.kind != "none"
        routed = encoding.to(self.reference_width.device, non_blocking=True) if experts else None
        width = architecture.number("embed_dim")
        table = self.embedding.select(width)
        return LanguageSubnet(
            table,
            table if self.output is None else self.output.select(width),
            tuple(
                layer.select(width, sizes.ffn_dim, sizes.heads, routed, sizes.attention, sizes.qkv_dim)
                for layer, sizes in zip(self.kept_layers(architecture), transformer_layers(architecture), strict=True)
            ),
            None if self.norm is None else self.norm.select(width),
            architecture,
        )

    def kept_layers(self, architecture: Architecture) -> list[ElasticEncoderLayer]:
        """The layers that an architecture runs, in the order in which it does."""
        return kept_layers(self.layers, architecture.number("layers"), self.config.layer_order)

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``LanguageNet`` built from ``SearchSpace.of(architecture)`` without experts."""
        return static_state(self, architecture)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """The table of positions is a function of the supernet's width, which travels with the weights."""
        width = state_dict.get(prefix + "reference_width")
        if width is not None:
            if width.numel() != 1:
                raise CheckpointError(f"reference_width has shape {tuple(width.shape)}, expected one number")
            self.positions.resize(int(width))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def _dropouts(self, features: int) -> Dropouts:
        if not self.training:
            return Dropouts()
        config, scale = self.config, features / self.positions.width
        return Dropouts(config.dropout * scale, config.attention_dropout, config.activation_dropout * scale)

    def embedding_scale(self, table: Tensor) -> float:
        """By what embeddings are multiplied."""
        fixed = self.config.embedding_scale
        return math.sqrt(table.shape[1]) if fixed is None else fixed

    def positions_at(self, first: int, last: int, features: int) -> Tensor:
        """The vectors (last - first, features) of those positions, the first token's being 0."""
        offset = self.config.first_position
        found: Tensor = self.positions(offset + last, features)
        return found[offset + first :]

    def _embed(self, tokens: Tensor, table: Tensor, positions: Tensor) -> Tensor:
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(table)
        return x + positions.to(table.dtype)

    def features(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """``tokens`` (B, T), padded on the right if at all, to features before the output projection (B, T, C)."""
        table = subnet.embedding
        drop = self._dropouts(table.shape[1])
        x = self._embed(tokens, table, self.positions_at(0, tokens.shape[1], table.shape[1]))
        x = F.dropout(x, drop.residual) if drop.residual else x
        for layer, weights in zip(self.layers, subnet.layers, strict=False):
            x = layer(x, weights, None, drop)
        return self._normed(subnet, x)

    def _normed(self, subnet: LanguageSubnet, x: Tensor) -> Tensor:
        return x if subnet.norm is None else norm(x, subnet.norm)

    def forward(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) after each of ``tokens`` (B, T), each position reading only itself and earlier ones."""
        return F.linear(self.features(subnet, tokens), subnet.output)

    def start(self, subnet: LanguageSubnet) -> LanguageCache:
        """A cache for decoding from the first position on."""
        return LanguageCache([None] * len(subnet.layers))

    def read(self, subnet: LanguageSubnet, tokens: Tensor) -> tuple[Tensor, LanguageCache]:
        """A prompt (B, T) without padding, all positions at once: features (B, C) of the last, and the cache after
        it."""
        width, length = subnet.embedding.shape[1], tokens.shape[1]
        x = self._embed(tokens, subnet.embedding, self.positions_at(0, length, width))
        cache = self.start(subnet)
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.read(x, weights)
        cache.length = length
        return self._normed(subnet, x[:, -1]), cache

    def step(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Logits (B, V) after the next token (B,) of each row; the cache moves one position on."""
        return F.linear(self.step_features(subnet, tokens, cache), subnet.output)

    def step_features(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Do what :meth:`step` does, before the output projection: (B, C)."""
        table = subnet.embedding
        position = self.positions_at(cache.length, cache.length + 1, table.shape[1])
        return self.step_embedded(subnet, self._embed(tokens[:, None], table, position), cache)

    def step_embedded(self, subnet: LanguageSubnet, x: Tensor, cache: LanguageCache) -> Tensor:
        """Do what :meth:`step_features` does, from the token's embedding with its position ``x`` (B, 1, C)."""
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.step(x, weights, cache.past[index])
        cache.length += 1
        return self._normed(subnet, x[:, 0])


def length_limit(space: SearchSpace, config: LanguageConfig) -> int | None:
    """The longest sequence that networks of the space can read, by their attention or their positions; None: any."""
    if config.positions == "sinusoidal" and not GENES.bounded(space):
        return None
    return space.largest().number("context_length")
