"""Export of a translation subnet in two parts: the encoder with cross-attention states, and a decoding step.

Shapes: B batch, S source length, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.export.parts import ExportModule, OpenDim, Value
from nas_core.layers.positions import SinusoidalPositions
from nas_core.models.decoding_export import StepTables, cache_info, flat, next_values, state_values
from nas_core.models.static import SubnetModule
from nas_core.models.translation.genes import cross_reads
from nas_core.models.translation.net import DecoderCache, Subnet, TranslationNet, length_limits
from nas_core.space import Architecture, SearchSpace


def static_net(net: TranslationNet, architecture: Architecture, source: int, target: int) -> TranslationNet:
    """Return the static network in evaluation mode, with positions for these numbers of tokens."""
    state = net.static_state(architecture)
    subnet = net.select(architecture)
    vocabularies = len(subnet.source_embedding), len(subnet.output)
    static = TranslationNet(SearchSpace.of(architecture, like=net.space), *vocabularies, net.config.static())
    static.load_state_dict(state)
    if isinstance(static.source_positions, SinusoidalPositions):
        for index, (side, rows) in enumerate((("encoder", source), ("decoder", target))):
            positions = (static.source_positions, static.target_positions)[index]
            positions.table = net.positions(index, rows, architecture.number(f"{side}.embed_dim")).clone()
    static.config = replace(static.config, first_position=0)  # its tables start with the first token
    return static.eval()


class Encoder(SubnetModule):
    """Module from tokens ``(B, S)`` to masks and states of cross-attention."""

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        subnet = self.net.select(self.architecture)
        cache = self.net.start(subnet, self.net.encode(subnet, tokens))
        masks = dict(zip(cross_reads(self.architecture), cache.masks, strict=True))
        layer_masks = [masks[reads] for reads in _mask_reads(subnet)]
        return (*(mask for mask in layer_masks if mask is not None), *flat(cache.cross))


class DecoderStep(StepTables):
    """Module from next token ``(B,)``, position and states to log-probabilities ``(B, V)`` and new states."""

    positions: Tensor

    def __init__(self, net: TranslationNet, architecture: Architecture) -> None:
        super().__init__(net, architecture)
        subnet = net.select(architecture)
        self.masks = _mask_reads(subnet)
        kinds = [kind for layer in subnet.decoder_layers for kind in (layer.cross_attn.kind, layer.self_attn.kind)]
        self._add_tables(kinds, len(net.target_positions.table))
        self.register_buffer("positions", net.target_positions.table.detach(), persistent=False)

    def forward(self, token: Tensor, position: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        subnet, tensors = self.net.select(self.architecture), iter(states)
        masks = {reads: next(tensors) for reads in self.masks}
        cross = [self._restored(layer.cross_attn, tensors, position) for layer in subnet.decoder_layers]
        cache = DecoderCache(cross, [masks.get(reads) for reads in cross_reads(self.architecture)], None)
        cache.past = [self._restored(layer.self_attn, tensors, position) for layer in subnet.decoder_layers]
        table = subnet.target_embedding
        x = F.embedding(token, table)[:, None] * self.net.embedding_scale(1, table)
        features = self.net.step_embedded(subnet, x + F.embedding(position, self.positions), cache)
        return (F.log_softmax(F.linear(features, subnet.output), -1), *flat(cache.past))


def _mask_reads(subnet: Subnet) -> list[int]:
    layers = zip(cross_reads(subnet.architecture), subnet.decoder_layers, strict=True)
    return sorted({reads for reads, weights in layers if weights.cross_attn.kind.masks_memory})


def _source(reads: int) -> str:
    return "source" if reads == 1 else f"source_x{reads}"


def translation_parts(
    net: TranslationNet, architecture: Architecture, source_limit: int, target_limit: int
) -> tuple[ExportModule, ExportModule]:
    """Return a subnet as the parts ``encoder`` and ``decoder_step`` of an export.

    Sentences have at most ``source_limit`` and ``target_limit`` tokens, or fewer if attention has a maximum length.
    """
    limits = length_limits(SearchSpace.of(architecture, like=net.space), net.config)
    source_limit, target_limit = (
        max_length if limit is None else min(max_length, limit)
        for max_length, limit in zip((source_limit, target_limit), limits, strict=True)
    )
    static = static_net(net, architecture, source_limit, target_limit)
    subnet = static.select(architecture)
    vocabularies = len(subnet.source_embedding), len(subnet.output)
    all_reads = cross_reads(architecture)
    memory = [Value(f"cross_mask{_source(n)[6:]}", ("batch", 1, 1, _source(n)), "mask") for n in _mask_reads(subnet)]
    past: list[Value] = []
    for layer, (weights, reads) in enumerate(zip(subnet.decoder_layers, all_reads, strict=True)):
        memory += state_values("cross", layer, weights.cross_attn, _source(reads))
        past += state_values("self", layer, weights.self_attn)
    tokens = Value("tokens", ("batch", "source"), "sentence", vocabularies[0], net.config.padding_idx)
    token = Value("token", ("batch",), "token", vocabularies[1])
    used_dims = {dim for value in [*memory, *past] for dim in value.shape}
    lengths = [OpenDim(_source(n), 1, n * source_limit) for n in sorted(set(all_reads)) if _source(n) in used_dims]
    lengths += [OpenDim("past", 0, target_limit - 1)] if "past" in used_dims else []
    encoder_dims = (OpenDim("batch"), OpenDim("source", 1, source_limit))
    return (
        ExportModule("encoder", Encoder(static, architecture), (tokens,), tuple(memory), encoder_dims),
        ExportModule(
            "decoder_step",
            DecoderStep(static, architecture),
            (token, Value("position", (), "token", target_limit), *memory, *past),
            (Value("log_probs", ("batch", vocabularies[1])), *next_values(past)),
            (OpenDim("batch"), *lengths),
        ),
    )


def part_inputs(part: ExportModule, source: int, past: int, batch: int, stream: torch.Generator) -> tuple[Tensor, ...]:
    sizes = {dim.name: source * int(dim.name.partition("_x")[2] or 1) for dim in part.dims}
    sizes |= {"batch": batch, "past": past}
    return tuple(value.example(sizes, stream) for value in part.inputs)


def translation_info(encoder: ExportModule, step: ExportModule) -> dict[str, Any]:
    (source,) = (dim.largest for dim in encoder.dims if dim.name == "source")
    return {
        "kind": "translation",
        "memory": [value.name for value in encoder.outputs],
        "caches": cache_info([value for value in step.inputs if value.name.startswith("self_")]),
        "vocabulary": {"source": encoder.inputs[0].below, "target": step.inputs[0].below},
        "limits": {"source": source, "target": step.inputs[1].below},
    }
