"""Elastic encoder-decoder transformer in HAT's space, with or without experts.

Shapes: B batch, S/T source and target length, C channels, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import CheckpointError, SpaceError
from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer.common import check_length
from nas_core.layers.attention.cosformer.kind import LinearAttention
from nas_core.layers.attention.kinds import AttentionKind, AttentionState, resolve_kind
from nas_core.layers.attention.projections import CrossAttentionWeights, cross_keys_values
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.linear import ElasticEmbedding, ElasticLayerNorm
from nas_core.layers.positions import StoredPositions, positions_of
from nas_core.layers.torch_modes import is_exporting
from nas_core.layers.transformer import (
    AttentionConfig,
    DecoderLayerWeights,
    Dropouts,
    ElasticDecoderLayer,
    ElasticEncoderLayer,
    EncoderLayerWeights,
    LayerForm,
    norm,
)
from nas_core.layers.weights import NormWeights, named_tensors
from nas_core.models.static import copy_state, encoding_size, router_encoding, select_eval
from nas_core.models.translation.genes import (
    attention_options,
    bounded,
    check_translation_space,
    cross_reads,
    decoder_layers,
    encoder_layers,
    widest,
    widest_queries,
)
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class TranslationConfig:
    """Settings of a translation network that are not searched."""

    share_all_embeddings: bool = False
    """Use one table for source and target embeddings and output projection, of a joint vocabulary."""
    share_decoder_embeddings: bool = False
    """Use one table for target embeddings and output projection."""
    dropout: float = 0.0
    """Dropout after embeddings and sublayers, scaled with the subnet's width as in HAT."""
    attention_dropout: float = 0.0
    """Dropout of attention weights."""
    activation_dropout: float = 0.0
    """Dropout of hidden units of feed-forward layers, scaled like ``dropout``."""
    norm_first: bool = False
    """True for layer norm before each sublayer, False for after it."""
    activation: str = "relu"
    """Activation of feed-forward layers, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    positions: str = "sinusoidal"
    """One of :data:`nas_core.layers.positions.POSITIONS`."""
    stored_positions: tuple[int, int] = (1024, 1024)
    """Numbers of stored source and target positions."""
    first_position: int = 0
    """Position of the first token, 2 in fairseq's transformer."""
    embedding_scale: tuple[float, float] | None = None
    """Factors of source and target embeddings. Default: the square root of the subnet's width, as in HAT."""
    encoder_order: tuple[int, ...] = ()
    """Encoder layer indices by decreasing importance. By default, shallower networks keep the first layers."""
    decoder_order: tuple[int, ...] = ()
    """Decoder layer indices by decreasing importance."""
    padding_idx: int = 1
    """Index of the padding token in both vocabularies."""
    mos: MoSConfig = field(default_factory=MoSConfig)
    linear: LinearAttention = field(default_factory=LinearAttention)
    """Settings of linear attention. ``max_length`` applies to all bounded attention in the decoder."""
    linear_encoder_length: int | None = None
    """Maximum length of bounded attention in the encoder, such as linear. None means each sentence's own length."""
    relative_length: int = 0
    """Largest distance of relative positions in softmax self-attention (Shaw et al. 2018). 0 disables them."""

    def static(self) -> TranslationConfig:
        """Return the settings of an extracted network."""
        return replace(self, mos=MoSConfig(), encoder_order=(), decoder_order=())


class Subnet(NamedTuple):
    """Weights of one architecture, with the parameter names of the static model."""

    source_embedding: Tensor
    target_embedding: Tensor
    output: Tensor
    encoder_layers: tuple[EncoderLayerWeights, ...]
    decoder_layers: tuple[DecoderLayerWeights, ...]
    encoder_norm: NormWeights | None
    decoder_norm: NormWeights | None
    architecture: Architecture


class Memory(NamedTuple):
    """Outputs ``(B, S, C)`` of the last encoder layers, last layer first, and the token mask ``(B, S)``."""

    outputs: tuple[Tensor, ...]
    tokens: Tensor | None

    def reorder(self, order: Tensor) -> Memory:
        outputs = tuple(output.index_select(0, order) for output in self.outputs)
        return Memory(outputs, None if self.tokens is None else self.tokens.index_select(0, order))


class LayerMemory(NamedTuple):
    """Keys and values of one decoder layer's cross-attention."""

    keys_values: tuple[Tensor, Tensor]
    mask: Tensor | None
    """``(B, 1, 1, S)``"""
    positions: Tensor | None
    """``(B, S)`` or ``(S,)``, for attention mechanisms that need them."""

    @classmethod
    def of(cls, weights: CrossAttentionWeights, output: Tensor, tokens: Tensor | None, reads: int) -> LayerMemory:
        """Project the outputs of ``reads`` encoder layers, concatenated to ``output`` ``(B, reads * S, C)``."""
        pair = cross_keys_values(output, weights)
        mask = None if tokens is None else tokens.repeat(1, reads)[:, None, None]
        if not weights.kind.reads_positions:
            return cls(pair, mask, None)
        length, max_length = output.shape[1] // reads, weights.kind.max_length
        if tokens is None:
            positions = torch.arange(length, device=output.device)
        else:
            positions = (tokens.cumsum(1, dtype=torch.long) - 1).clamp(min=0)
        if max_length is not None and length > max_length and not is_exporting():
            # only padding may be too long; counting the tokens synchronises with the device
            check_length(length if tokens is None else int(positions.max()) + 1, max_length)
        return cls(pair, mask, positions.repeat(reads) if tokens is None else positions.repeat(1, reads))

    def decoding_state(self, weights: CrossAttentionWeights) -> AttentionState:
        return weights.kind.memory(*self.keys_values, self.mask, self.positions)


class DecoderCache:
    """Decoding states of all decoder layers.

    Args:
        rows: ``(B,)``, index of the sentence that each batch row decodes.
    """

    def __init__(self, cross: list[AttentionState], masks: list[Tensor | None], rows: Tensor | None) -> None:
        self.length = 0
        self.past: list[AttentionState | None] = [None] * len(cross)
        self.cross, self.masks, self.rows = cross, masks, rows
        if rows is not None:
            self._select_sentences(rows)

    def reorder(self, order: Tensor) -> None:
        self.past = [None if past is None else past.reorder(order) for past in self.past]
        if self.rows is None:
            self._select_sentences(order)
            return
        rows = self.rows.index_select(0, order)
        if rows.device.type != "cpu" or not torch.equal(rows, self.rows):  # a comparison would synchronise
            self._select_sentences(order)
            self.rows = rows

    def _select_sentences(self, order: Tensor) -> None:
        self.cross = [memory.reorder(order) for memory in self.cross]
        self.masks = [None if mask is None else mask.index_select(0, order) for mask in self.masks]


def encoder_attention(space: SearchSpace, config: TranslationConfig) -> list[AttentionConfig]:
    return [
        AttentionConfig(
            _resolve_kinds(config, "encoder", kinds, config.linear_encoder_length),
            relative=_relative(space, config, "encoder", layer),
        )
        for layer, kinds in enumerate(attention_options(space, "encoder.self_attention"))
    ]


def decoder_attention(space: SearchSpace, config: TranslationConfig) -> list[AttentionConfig]:
    options = (attention_options(space, f"decoder.{name}_attention") for name in ("self", "cross"))
    return [
        AttentionConfig(
            _resolve_kinds(config, "decoder", kinds, config.linear.max_length),
            _resolve_kinds(config, "cross", cross_kinds, config.linear.max_length),
            _relative(space, config, "decoder", layer),
        )
        for layer, (kinds, cross_kinds) in enumerate(zip(*options, strict=True))
    ]


def length_limits(space: SearchSpace, config: TranslationConfig) -> tuple[int | None, int | None]:
    """Return the maximum source and target lengths of attention. None means unlimited."""
    max_length = config.linear.max_length
    source = [config.linear_encoder_length] * bounded(space, "encoder") + [max_length] * bounded(space, "cross")
    target = [max_length] * (bounded(space, "decoder") or bounded(space, "cross"))
    lowest = [min((limit for limit in limits if limit is not None), default=None) for limits in (source, target)]
    return lowest[0], lowest[1]


def _resolve_kinds(
    config: TranslationConfig, role: str, names: tuple[str, ...], max_length: int | None
) -> tuple[AttentionKind, ...]:
    settings = {config.linear.name: config.linear}
    return tuple(resolve_kind(settings.get(name, name), role, max_length) for name in names)


def _relative(space: SearchSpace, config: TranslationConfig, side: str, layer: int) -> tuple[int, int] | None:
    if not config.relative_length:
        return None
    if "head_dim" in space.fixed:
        return config.relative_length, space.largest().number("head_dim")
    min_heads = min(int(heads) for heads in space.choice(f"{side}.self_heads").options[layer])
    return config.relative_length, space.largest().number("qkv_dim") // min_heads


class TranslationNet(nn.Module):
    """Encoder-decoder transformer for search spaces with HAT's genes.

    Call ``encode``, then ``decode`` for all target positions at once, or ``start`` and ``step`` for one at a time.

    Args:
        reference_widths: encoder and decoder width for positions and dropout scale. Default: the largest.
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
        features = encoding_size(space, mos)
        self.encoder_layers: list[ElasticEncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticEncoderLayer(source, ffn, width, features, mos, form, attention)
            for ffn, width, attention in zip(
                widest(space, "encoder.ffn_dim"),
                widest_queries(space, "encoder.self_heads"),
                encoder_attention(space, config),
                strict=True,
            )
        )
        self.decoder_layers: list[ElasticDecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticDecoderLayer(target, source, ffn, width, features, mos, form, attention, cross)
            for ffn, width, cross, attention in zip(
                widest(space, "decoder.ffn_dim"),
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
                f"share_all_embeddings got {source_vocab} source and {target_vocab} target tokens, expected one joint"
                " vocabulary; preprocess with a joined dictionary"
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
        encoding = router_encoding(self.space, architecture, self.config.mos, self.reference_widths.device)
        source, target = architecture.number("encoder.embed_dim"), architecture.number("decoder.embed_dim")
        encoder = tuple(
            layer.select(source, genes.ffn_dim, genes.heads, encoding, genes.attention, genes.qkv_dim)
            for layer, genes in zip(
                self.kept_layers("encoder", architecture), encoder_layers(architecture), strict=True
            )
        )
        decoder = tuple(
            layer.select(
                target,
                source,
                genes.ffn_dim,
                genes.heads,
                genes.cross_heads,
                encoding,
                genes.attention,
                genes.cross_attention,
                (genes.qkv_dim, genes.cross_qkv_dim),
            )
            for layer, genes in zip(
                self.kept_layers("decoder", architecture), decoder_layers(architecture), strict=True
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
        """Return the layers of an architecture on the side ``encoder`` or ``decoder``."""
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
        """Return the state dict of the static subnet."""
        subnet: Subnet = select_eval(self, architecture)
        tensors = named_tensors(subnet)
        state = {name: tensor for name, tensor in tensors if not name.endswith("embedding") and name != "output"}
        source, target = subnet.source_embedding, subnet.target_embedding
        if self.config.share_all_embeddings:
            state["embedding.weight"] = source if source.shape[1] >= target.shape[1] else target
        else:
            state |= {"source_embedding.weight": source, "target_embedding.weight": target}
            if not self.config.share_decoder_embeddings:
                state["output.weight"] = subnet.output
        for name, table in (("source", source), ("target", target)):
            positions = getattr(self, f"{name}_positions")
            if isinstance(positions, StoredPositions):
                state[f"{name}_positions.table"] = positions.table[:, : table.shape[1]]
        return copy_state((*state.items(), ("reference_widths", self.reference_widths)))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Restore the widths of the supernet, on which position embeddings depend."""
        widths = state_dict.get(prefix + "reference_widths")
        if widths is not None:
            if widths.shape != (2,):
                raise CheckpointError(
                    f"tensor {prefix}reference_widths of the checkpoint has shape {tuple(widths.shape)}; expected (2,);"
                    " give an undamaged copy"
                )
            self.source_positions.resize(int(widths[0]))
            self.target_positions.resize(int(widths[1]))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    # -- computing -----------------------------------------------------------------------------------------------------

    def embedding_scale(self, side: int, table: Tensor) -> float:
        """Return the factor of source (0) or target (1) embeddings, by default ``sqrt(C)``."""
        fixed = self.config.embedding_scale
        return math.sqrt(table.shape[1]) if fixed is None else fixed[side]

    def positions(self, side: int, length: int, features: int) -> Tensor:
        """Return the first positions ``(length, features)`` of source (0) or target (1)."""
        positions, first = (self.source_positions, self.target_positions)[side], self.config.first_position
        table: Tensor = positions(first + length, features)
        return table[first:]

    def _embed(self, side: int, tokens: Tensor, table: Tensor, positions: Tensor, drop: Dropouts) -> Tensor:
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(side, table)
        x = x + positions.to(table.dtype)
        return F.dropout(x, drop.residual) if drop.residual else x

    def encode(self, subnet: Subnet, tokens: Tensor, padded: bool = True) -> Memory:
        """Encode ``tokens`` ``(B, S)``, padded on either side. Set ``padded`` to False if there is no padding."""
        mask = tokens.ne(self.config.padding_idx) if padded else None
        table = subnet.source_embedding
        drop = Dropouts.of(self, table.shape[1] / self.source_positions.width)
        positions = self.positions(0, tokens.shape[1], table.shape[1])
        if mask is not None:
            positions = positions[(mask.cumsum(1, dtype=torch.long) - 1).clamp(min=0)]
        x = self._embed(0, tokens, table, positions, drop)
        keys = None if mask is None else mask[:, None, None]
        outputs = [x]
        for layer, weights in zip(self.encoder_layers, subnet.encoder_layers, strict=False):
            x = layer(x, weights, keys, drop)
            outputs.append(x)
        read_outputs = outputs[: -max(cross_reads(subnet.architecture)) - 1 : -1]
        if subnet.encoder_norm is not None:
            read_outputs = [norm(output, subnet.encoder_norm) for output in read_outputs]
        return Memory(tuple(read_outputs), mask)

    def _memories(self, subnet: Subnet, memory: Memory) -> list[LayerMemory]:
        concatenated = {1: memory.outputs[0]}
        memories = []
        for weights, reads in zip(subnet.decoder_layers, cross_reads(subnet.architecture), strict=True):
            if reads not in concatenated:
                concatenated[reads] = torch.cat(memory.outputs[:reads], 1)
            memories.append(LayerMemory.of(weights.cross_attn, concatenated[reads], memory.tokens, reads))
        return memories

    def decode_features(self, subnet: Subnet, tokens: Tensor, memory: Memory) -> Tensor:
        """Compute features ``(B, T, C)`` of right-padded ``tokens`` ``(B, T)``."""
        table = subnet.target_embedding
        drop = Dropouts.of(self, table.shape[1] / self.target_positions.width)
        x = self._embed(1, tokens, table, self.positions(1, tokens.shape[1], table.shape[1]), drop)
        memories = self._memories(subnet, memory)
        for layer, weights, (pair, mask, positions) in zip(
            self.decoder_layers, subnet.decoder_layers, memories, strict=False
        ):
            x = layer(x, weights, pair, mask, drop, positions)
        return x if subnet.decoder_norm is None else norm(x, subnet.decoder_norm)

    def decode(self, subnet: Subnet, tokens: Tensor, memory: Memory) -> Tensor:
        """Compute logits ``(B, T, V)`` of right-padded ``tokens`` ``(B, T)``."""
        return F.linear(self.decode_features(subnet, tokens, memory), subnet.output)

    def forward(self, subnet: Subnet, source: Tensor, target: Tensor) -> Tensor:
        """Compute logits ``(B, T, V)`` of ``target`` ``(B, T)`` for ``source`` ``(B, S)``."""
        return self.decode(subnet, target, self.encode(subnet, source))

    def start(self, subnet: Subnet, memory: Memory, rows: Tensor | None = None) -> DecoderCache:
        """Return a decoding cache with the cross-attention states of encoded sentences.

        Args:
            rows: ``(B,)``, index in ``memory`` of each batch row's sentence. Default: 0, 1, ..
        """
        memories = self._memories(subnet, memory)
        cross = [m.decoding_state(w.cross_attn) for m, w in zip(memories, subnet.decoder_layers, strict=True)]
        return DecoderCache(cross, [memory.mask for memory in memories], rows)

    def step(self, subnet: Subnet, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Compute logits ``(B, V)`` for the next tokens ``(B,)``, and update the cache."""
        return F.linear(self.step_features(subnet, tokens, cache), subnet.output)

    def step_features(self, subnet: Subnet, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Compute the features ``(B, C)`` of :meth:`step`, before the output projection."""
        table = subnet.target_embedding
        position = self.positions(1, cache.length + 1, table.shape[1])[cache.length]
        return self.step_embedded(subnet, self._embed(1, tokens[:, None], table, position, Dropouts()), cache)

    def step_embedded(self, subnet: Subnet, x: Tensor, cache: DecoderCache) -> Tensor:
        """Compute :meth:`step_features` for embedded tokens ``x`` ``(B, 1, C)``."""
        for index, weights in enumerate(subnet.decoder_layers):
            layer = self.decoder_layers[index]
            x, cache.past[index] = layer.step(
                x, weights, cache.past[index], cache.cross[index], cache.masks[index], cache.length
            )
        cache.length += 1
        if subnet.decoder_norm is not None:
            x = norm(x, subnet.decoder_norm)
        return x[:, 0]
