"""A translation subnet as two parts: the encoder with all that depends on the source alone, and a decoding step.

The step reads and gives its caches, so that a loop outside keeps nothing else: the tensors of the states of its kinds
of attention, such as keys and values of past positions for softmax and sums of constant size for linear attention. What
a decoder layer reads of the source (projected keys and values, or their sums) comes out of the encoder, once per
sentence. All caches have the batch first; beam search
takes rows of them.

Shapes: B batch, S/T source and target length, H heads, D head dim, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.export.parts import OpenDim, Part, Value
from nas_core.layers.attention.kinds import AttentionKind, AttentionState, StateValue
from nas_core.layers.attention.projections import CrossAttentionWeights, SelfAttentionWeights
from nas_core.layers.positions import SinusoidalPositions
from nas_core.models.translation.attention import length_limits
from nas_core.models.translation.net import TranslationNet
from nas_core.models.translation.subnet import DecoderCache, Subnet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.hat import READ_LAYERS


def static_net(net: TranslationNet, architecture: Architecture, source: int, target: int) -> TranslationNet:
    """The static network of ``architecture`` in evaluation mode; its tables of positions have just the width that it
    reads and as many rows as ``source`` and ``target``, the longest sentences."""
    state = net.static_state(architecture)
    subnet = net.select(architecture)
    vocabularies = len(subnet.source_embedding), len(subnet.output)
    static = TranslationNet(SearchSpace.of(architecture, like=net.space), *vocabularies, net.config.static())
    static.load_state_dict(state)
    for side, rows in (("source", source), ("target", target)):
        positions = getattr(static, f"{side}_positions")
        width = architecture.number(f"{'encoder' if side == 'source' else 'decoder'}.embed_dim")
        if isinstance(positions, SinusoidalPositions):
            positions.table = net.positions(("source", "target").index(side), rows, width).clone()
    static.config = replace(static.config, first_position=0)  # its tables begin with the first token
    return static.eval()


class Encoder(nn.Module):
    """Tokens ``(B, S)`` to what each decoder layer reads of them."""

    def __init__(self, net: TranslationNet, architecture: Architecture) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        subnet = self.net.select(self.architecture)
        cache = self.net.start(subnet, self.net.encode(subnet, tokens))
        masks = {
            reads: mask
            for reads, mask, weights in zip(_reads(self.architecture), cache.masks, subnet.decoder_layers, strict=True)
            if weights.cross_attn.kind.masks_memory and mask is not None
        }
        return (*(masks[reads] for reads in sorted(masks)), *_flat(cache.cross))


class DecoderStep(nn.Module):
    """The next token ``(B,)``, its position and the caches to log-probabilities ``(B, V)`` and the caches after it."""

    positions: Tensor

    def __init__(self, net: TranslationNet, architecture: Architecture) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture
        subnet = net.select(architecture)
        self.masks, rows = _mask_reads(subnet), len(net.target_positions.table)
        kinds = [kind for layer in subnet.decoder_layers for kind in (layer.cross_attn.kind, layer.self_attn.kind)]
        self.kinds = list(dict.fromkeys(kinds))
        for index, kind in enumerate(self.kinds):
            self.register_buffer(f"table_{index}", kind.step_table(rows), persistent=False)
        self.register_buffer("positions", net.target_positions.table.detach(), persistent=False)

    def forward(self, token: Tensor, position: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        subnet = self.net.select(self.architecture)
        layers, count = subnet.decoder_layers, len(self.masks)
        masks = dict(zip(self.masks, rest[:count], strict=True))
        given = iter(rest[count:])

        def taken(kind: AttentionKind, values: tuple[StateValue, ...]) -> tuple[list[Tensor], Tensor, Tensor | None]:
            table = getattr(self, f"table_{self.kinds.index(kind)}")
            return [next(given) for _ in values], position, None if table is None else F.embedding(position, table)

        cross = [w.cross_attn.kind.restored(*taken(w.cross_attn.kind, _kept(w.cross_attn))) for w in layers]
        cache = DecoderCache(cross, [masks.get(reads) for reads in _reads(self.architecture)], None)
        cache.past = [w.self_attn.kind.restored(*taken(w.self_attn.kind, _kept(w.self_attn))) for w in layers]
        table = subnet.target_embedding
        x = F.embedding(token, table)[:, None] * self.net.embedding_scale(1, table) + F.embedding(
            position, self.positions
        )
        logits = F.linear(self.net.step_embedded(subnet, x, cache), subnet.output)
        return (F.log_softmax(logits, -1), *_flat([past for past in cache.past if past is not None]))


def _flat(states: Sequence[AttentionState]) -> list[Tensor]:
    return [tensor for state in states for tensor in state.tensors()]


def _reads(architecture: Architecture) -> list[int]:
    """Count the encoder layers whose outputs each decoder layer reads, one behind the other."""
    options = architecture.numbers("decoder.arbitrary_cross")
    return [min(READ_LAYERS[option], architecture.number("encoder.layers")) for option in options]


def _mask_reads(subnet: Subnet) -> list[int]:
    """The masks that steps need to read the source, by the number of encoder layers they cover."""
    layers = zip(_reads(subnet.architecture), subnet.decoder_layers, strict=True)
    return sorted({reads for reads, weights in layers if weights.cross_attn.kind.masks_memory})


# -- names and shapes --------------------------------------------------------------------------------------------------


def _source(reads: int) -> str:
    return "source" if reads == 1 else f"source_x{reads}"


def _kept(weights: SelfAttentionWeights | CrossAttentionWeights, length: str = "past") -> tuple[StateValue, ...]:
    """The tensors that a layer's attention keeps of so many positions."""
    dim = weights.out_proj.weight.shape[1] // weights.heads
    return weights.kind.state_values(weights.heads, dim, length)


def _values(
    name: str, layer: int, weights: SelfAttentionWeights | CrossAttentionWeights, length: str = "past"
) -> list[Value]:
    return [
        Value(f"{name}_{value.name}_{layer}", value.shape, "positive" if value.positive else "number")
        for value in _kept(weights, length)
    ]


def translation_parts(
    net: TranslationNet, architecture: Architecture, source_limit: int, target_limit: int
) -> tuple[Part, Part]:
    """``encoder`` and ``decoder_step`` of a subnet, for sentences of at most so many tokens; attention that is made for
    a longest sentence may lower the limits."""
    limits = length_limits(SearchSpace.of(architecture, like=net.space), net.config)
    source_limit, target_limit = (
        asked if limit is None else min(asked, limit)
        for asked, limit in zip((source_limit, target_limit), limits, strict=True)
    )
    static = static_net(net, architecture, source_limit, target_limit)
    subnet = static.select(architecture)
    vocabularies = len(subnet.source_embedding), len(subnet.output)
    reads, masks = _reads(architecture), _mask_reads(subnet)
    memory = [Value(f"cross_mask{_source(n)[6:]}", ("batch", 1, 1, _source(n)), "mask") for n in masks]
    past: list[Value] = []
    for layer, weights in enumerate(subnet.decoder_layers):
        memory += _values("cross", layer, weights.cross_attn, _source(reads[layer]))
        past += _values("self", layer, weights.self_attn)
    after = [replace(v, name=f"next_{v.name}", shape=tuple(_grown(dim) for dim in v.shape)) for v in past]
    tokens = Value("tokens", ("batch", "source"), "sentence", vocabularies[0], net.config.padding_idx)
    token = Value("token", ("batch",), "token", vocabularies[1])
    used = {dim for value in [*memory, *past] for dim in value.shape}
    lengths = [OpenDim(_source(n), 1, n * source_limit) for n in sorted(set(reads)) if _source(n) in used]
    lengths += [OpenDim("past", 0, target_limit - 1)] if "past" in used else []
    encoder_dims = (OpenDim("batch"), OpenDim("source", 1, source_limit))
    return (
        Part("encoder", Encoder(static, architecture), (tokens,), tuple(memory), encoder_dims),
        Part(
            "decoder_step",
            DecoderStep(static, architecture),
            (token, Value("position", (), "token", target_limit), *memory, *past),
            (Value("log_probs", ("batch", vocabularies[1])), *after),
            (OpenDim("batch"), *lengths),
        ),
    )


def part_inputs(part: Part, source: int, past: int, batch: int, stream: torch.Generator) -> tuple[Tensor, ...]:
    """Random inputs for sentences of ``source`` tokens and as many ``past`` positions."""
    # "source_x3": a decoder layer may read the outputs of three encoder layers, one behind the other.
    sizes = {dim.name: source * int(dim.name.partition("_x")[2] or 1) for dim in part.dims}
    return tuple(value.example(sizes | {"batch": batch, "past": past}, stream) for value in part.inputs)


def _grown(dim: int | str) -> int | str:
    return "past + 1" if dim == "past" else dim


def translation_info(encoder: Part, step: Part) -> dict[str, Any]:
    """What a loop around the two files must know, as plain data."""
    caches = [value for value in step.inputs if value.name.startswith("self_")]
    (source,) = (dim.largest for dim in encoder.dims if dim.name == "source")
    return {
        "kind": "translation",
        "memory": [value.name for value in encoder.outputs],
        "caches": [
            {
                "input": value.name,
                "output": f"next_{value.name}",
                "start": [0 if dim == "past" else dim for dim in value.shape],
            }
            for value in caches
        ],
        "vocabulary": {"source": encoder.inputs[0].below, "target": step.inputs[0].below},
        "limits": {"source": source, "target": step.inputs[1].below},
    }
