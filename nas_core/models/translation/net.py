"""The translation network: an elastic encoder-decoder transformer in HAT's space, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from ``SearchSpace.of``, the space
of one architecture). It computes with a ``Subnet``, the weights of one architecture, which is handed from the encoder
to the decoder; the module itself remembers no architecture.

Shapes: B batch, S/T source and target length, C channels, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import CheckpointError, SpaceError
from nas_core.layers import ElasticDecoderLayer, ElasticEmbedding, ElasticEncoderLayer, ElasticLayerNorm
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.positions import SinusoidalPositions, StoredPositions, positions_of
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.models.static import routed, routed_features
from nas_core.models.translation.attention import decoder_attention, encoder_attention
from nas_core.models.translation.genes import check_translation_space, widest_queries
from nas_core.models.translation.static import static_state
from nas_core.models.translation.subnet import DecoderCache, LayerMemory, Memory, Subnet, TranslationConfig
from nas_core.space import Architecture, SearchSpace
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of


class TranslationNet(nn.Module):
    """Encoder-decoder transformer of a search space with HAT's genes.

    ``select(architecture)`` gives the weights of one architecture, mixing experts once; ``encode`` with ``decode`` (all
    target positions) or with ``start`` and ``step`` (one position at a time) compute with them.

    Raises:
        SpaceError: the space lacks a gene that this network has.
    """

    reference_widths: Tensor
    embedding: ElasticEmbedding
    source_embedding: ElasticEmbedding
    target_embedding: ElasticEmbedding
    output: ElasticEmbedding

    def __init__(
        self,
        space: SearchSpace,
        source_vocab: int,
        target_vocab: int,
        config: TranslationConfig | None = None,
        reference_widths: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.space = space
        self.config = config = config or TranslationConfig()
        check_translation_space(space)
        largest = space.largest()
        source, target = largest.number("encoder.embed_dim"), largest.number("decoder.embed_dim")
        self._build_embeddings(source_vocab, target_vocab, source, target)
        widths = reference_widths or (source, target)
        self.register_buffer("reference_widths", torch.tensor(widths))
        kind, (longest_source, longest_target) = config.positions, config.stored_positions
        self.source_positions = positions_of(kind, widths[0], longest_source, source)
        self.target_positions = positions_of(kind, widths[1], longest_target, target)
        mos, form = config.mos, LayerForm(config.norm_first, config.activation)
        features = routed_features(space, mos)
        self.encoder_layers: list[ElasticEncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticEncoderLayer(source, ffn, width, features, mos, form, attention)
            for ffn, width, attention in zip(
                _widest(space, "encoder.ffn_dim"),
                widest_queries(space, "encoder.self_heads"),
                encoder_attention(space, config),
                strict=True,
            )
        )
        self.decoder_layers: list[ElasticDecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticDecoderLayer(target, source, ffn, width, features, mos, form, attention, cross)
            for ffn, width, cross, attention in zip(
                _widest(space, "decoder.ffn_dim"),
                widest_queries(space, "decoder.self_heads"),
                widest_queries(space, "decoder.cross_heads"),
                decoder_attention(space, config),
                strict=True,
            )
        )
        check_order(config.encoder_order, len(self.encoder_layers), "encoder layers")
        check_order(config.decoder_order, len(self.decoder_layers), "decoder layers")
        self.encoder_norm = ElasticLayerNorm(source) if form.norm_first else None
        self.decoder_norm = ElasticLayerNorm(target) if form.norm_first else None

    def _build_embeddings(self, source_vocab: int, target_vocab: int, source: int, target: int) -> None:
        config = self.config
        if config.share_all_embeddings and source_vocab != target_vocab:
            raise SpaceError(
                f"share_all_embeddings needs one joint vocabulary, got {source_vocab} source and {target_vocab} target"
                " tokens; preprocess with a joined dictionary"
            )
        if config.share_all_embeddings:
            self.embedding = ElasticEmbedding(source_vocab, max(source, target), config.padding_idx)
        else:
            self.source_embedding = ElasticEmbedding(source_vocab, source, config.padding_idx)
            self.target_embedding = ElasticEmbedding(target_vocab, target, config.padding_idx)
            if not config.share_decoder_embeddings:
                self.output = ElasticEmbedding(target_vocab, target, config.padding_idx)

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Subnet:
        """The weights of ``architecture``: slices of the supernet's, experts mixed by the routers.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        encoding = routed(self.space, architecture, self.config.mos, self.reference_widths.device)
        source, target = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
        encoder_kinds, decoder_kinds, cross_kinds = (attention_of(architecture, gene) for gene in ATTENTION_GENES)
        encoder = tuple(
            layer.select(source, ffn, heads, encoding, kind, width)
            for layer, ffn, heads, kind, width in zip(
                self.kept_layers("encoder", architecture),
                architecture.numbers("encoder.ffn_dim"),
                architecture.numbers("encoder.self_heads"),
                encoder_kinds,
                qkv_dims(architecture, "encoder.self_heads"),
                strict=True,
            )
        )
        decoder = tuple(
            layer.select(target, source, ffn, self_heads, cross_heads, encoding, kind, cross, widths)
            for layer, ffn, self_heads, cross_heads, kind, cross, *widths in zip(
                self.kept_layers("decoder", architecture),
                architecture.numbers("decoder.ffn_dim"),
                architecture.numbers("decoder.self_heads"),
                architecture.numbers("decoder.cross_heads"),
                decoder_kinds,
                cross_kinds,
                qkv_dims(architecture, "decoder.self_heads"),
                qkv_dims(architecture, "decoder.cross_heads"),
                strict=True,
            )
        )
        return Subnet(
            *self._select_embeddings(source, target),
            encoder,
            decoder,
            self.encoder_norm.select(source) if self.encoder_norm is not None else None,
            self.decoder_norm.select(target) if self.decoder_norm is not None else None,
            architecture,
        )

    def kept_layers(self, side: str, architecture: Architecture) -> list[Any]:
        """The layers of ``encoder`` or ``decoder`` that an architecture runs, in the order in which it does."""
        order = self.config.encoder_order if side == "encoder" else self.config.decoder_order
        layers = self.encoder_layers if side == "encoder" else self.decoder_layers
        return kept_layers(layers, architecture.number(f"{side}.layers"), order)

    def _select_embeddings(self, source: int, target: int) -> tuple[Tensor, Tensor, Tensor]:
        if self.config.share_all_embeddings:
            table = self.embedding.select(target)
            return self.embedding.select(source), table, table
        table = self.target_embedding.select(target)
        output = table if self.config.share_decoder_embeddings else self.output.select(target)
        return self.source_embedding.select(source), table, output

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``TranslationNet`` built from ``SearchSpace.of(architecture)`` without experts."""
        return static_state(self, architecture)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """The table of positions is a function of the supernet's width, which travels with the weights."""
        widths = state_dict.get(prefix + "reference_widths")
        if widths is not None:
            if widths.shape != (2,):
                raise CheckpointError(f"reference_widths has shape {tuple(widths.shape)}, expected (2,)")
            self.source_positions.resize(int(widths[0]))
            self.target_positions.resize(int(widths[1]))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def _dropouts(self, features: int, positions: SinusoidalPositions | StoredPositions) -> Dropouts:
        if not self.training:
            return Dropouts()
        scale = features / positions.width
        config = self.config
        return Dropouts(config.dropout * scale, config.attention_dropout, config.activation_dropout * scale)

    def embedding_scale(self, side: int, table: Tensor) -> float:
        """By what embeddings of the source (0) or the target (1) are multiplied."""
        fixed = self.config.embedding_scale
        return math.sqrt(table.shape[1]) if fixed is None else fixed[side]

    def positions(self, side: int, length: int, features: int) -> Tensor:
        """The vectors (length, features) of the source's (0) or the target's (1) first positions."""
        positions, first = (self.source_positions, self.target_positions)[side], self.config.first_position
        found: Tensor = positions(first + length, features)
        return found[first:]

    def _embed(self, side: int, tokens: Tensor, table: Tensor, positions: Tensor, drop: Dropouts) -> Tensor:
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(side, table)
        x = x + positions.to(table.dtype)
        return F.dropout(x, drop.residual) if drop.residual else x

    def encode(self, subnet: Subnet, tokens: Tensor, padded: bool = True) -> Memory:
        """``tokens`` (B, S), padded on either side, to what the decoder reads. ``padded=False`` promises no padding."""
        mask = tokens.ne(self.config.padding_idx) if padded else None
        table = subnet.source_embedding
        drop = self._dropouts(table.shape[1], self.source_positions)
        positions = self.positions(0, tokens.shape[1], table.shape[1])
        if mask is not None:
            positions = positions[(mask.cumsum(1, dtype=torch.long) - 1).clamp(min=0)]
        x = self._embed(0, tokens, table, positions, drop)
        keys = None if mask is None else mask[:, None, None]
        outputs = [x]
        for layer, weights in zip(self.encoder_layers, subnet.encoder_layers, strict=False):
            x = layer(x, weights, keys, drop)
            outputs.append(x)
        reads = max((READ_LAYERS[value] for value in subnet.architecture.numbers("decoder.arbitrary_cross")), default=1)
        last = outputs[: -reads - 1 : -1] if reads < len(outputs) else outputs[:0:-1]
        if subnet.encoder_norm is not None:
            last = [norm(output, subnet.encoder_norm) for output in last]
        return Memory(tuple(last), mask)

    def _memories(self, subnet: Subnet, memory: Memory) -> list[LayerMemory]:
        """What each decoder layer reads."""
        joined = {1: memory.outputs[0]}
        read = []
        options = subnet.architecture.numbers("decoder.arbitrary_cross")
        for weights, option in zip(subnet.decoder_layers, options, strict=True):
            reads = min(READ_LAYERS[option], len(memory.outputs))
            if reads not in joined:
                joined[reads] = torch.cat(memory.outputs[:reads], 1)
            read.append(LayerMemory.of(weights.cross_attn, joined[reads], memory.tokens, reads))
        return read

    def decode_features(self, subnet: Subnet, tokens: Tensor, memory: Memory) -> Tensor:
        """``tokens`` (B, T), padded on the right if at all, to features before the output projection (B, T, C)."""
        table = subnet.target_embedding
        drop = self._dropouts(table.shape[1], self.target_positions)
        x = self._embed(1, tokens, table, self.positions(1, tokens.shape[1], table.shape[1]), drop)
        memories = self._memories(subnet, memory)
        for layer, weights, (pair, mask, at) in zip(self.decoder_layers, subnet.decoder_layers, memories, strict=False):
            x = layer(x, weights, pair, mask, drop, at)
        return x if subnet.decoder_norm is None else norm(x, subnet.decoder_norm)

    def decode(self, subnet: Subnet, tokens: Tensor, memory: Memory) -> Tensor:
        """Logits (B, T, V) of all target positions, each reading only earlier ones."""
        return F.linear(self.decode_features(subnet, tokens, memory), subnet.output)

    def forward(self, subnet: Subnet, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of ``target`` (B, T) given ``source`` (B, S)."""
        return self.decode(subnet, target, self.encode(subnet, source))

    def start(self, subnet: Subnet, memory: Memory, rows: Tensor | None = None) -> DecoderCache:
        """A cache for decoding step by step; keys and values of the memory are computed here, once.

        ``rows`` (B,) gives the sentence of ``memory`` that each row of the batch decodes, as when every sentence has
        several beams; default: row by row.
        """
        memories = self._memories(subnet, memory)
        read = [each.kept(w.cross_attn) for each, w in zip(memories, subnet.decoder_layers, strict=True)]
        return DecoderCache(read, [each.mask for each in memories], rows)

    def step(self, subnet: Subnet, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Logits (B, V) after the next token (B,) of each row; the cache moves one position on."""
        return F.linear(self.step_features(subnet, tokens, cache), subnet.output)

    def step_features(self, subnet: Subnet, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Do what :meth:`step` does, before the output projection: (B, C)."""
        table = subnet.target_embedding
        position = self.positions(1, cache.length + 1, table.shape[1])[cache.length]
        return self.step_embedded(subnet, self._embed(1, tokens[:, None], table, position, Dropouts()), cache)

    def step_embedded(self, subnet: Subnet, x: Tensor, cache: DecoderCache) -> Tensor:
        """Do what :meth:`step_features` does, from the token's embedding with its position ``x`` (B, 1, C)."""
        for index, weights in enumerate(subnet.decoder_layers):
            layer = self.decoder_layers[index]
            x, cache.past[index] = layer.step(
                x, weights, cache.past[index], cache.cross[index], cache.masks[index], cache.length
            )
        cache.length += 1
        if subnet.decoder_norm is not None:
            x = norm(x, subnet.decoder_norm)
        return x[:, 0]


def _widest(space: SearchSpace, gene: str) -> list[int]:
    return [max(int(option) for option in options) for options in space.choice(gene).options]
