"""Export of a language model in two parts: a prompt, which returns decoding states, and a decoding step.

Shapes: B batch, T length, V vocabulary.
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
from nas_core.models.language.net import LanguageNet, length_limit
from nas_core.models.static import SubnetModule
from nas_core.space import Architecture, SearchSpace


def static_net(net: LanguageNet, architecture: Architecture, max_length: int) -> LanguageNet:
    """Return the static network in evaluation mode, with positions for ``max_length`` tokens."""
    static = net.static(architecture)
    if isinstance(static.positions, SinusoidalPositions):
        static.positions.table = net.positions_at(0, max_length, architecture.number("embed_dim")).clone()
        static.config = replace(static.config, first_position=0)  # its table starts with the first token
    return static


class Prompt(SubnetModule):
    """Module from tokens ``(B, T)`` without padding to log-probabilities ``(B, V)`` of the next token, and states."""

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        subnet = self.net.select(self.architecture)
        features, cache = self.net.read(subnet, tokens)
        return (F.log_softmax(F.linear(features, subnet.output), -1), *flat(cache.past))


class DecoderStep(StepTables):
    """Module from next token ``(B,)``, position and states to log-probabilities ``(B, V)`` and new states."""

    positions: Tensor

    def __init__(self, net: LanguageNet, architecture: Architecture, max_length: int) -> None:
        super().__init__(net, architecture)
        self._add_tables([layer.self_attn.kind for layer in net.select(architecture).layers], max_length)
        table = net.positions_at(0, max_length, architecture.number("embed_dim"))
        self.register_buffer("positions", table.detach(), persistent=False)

    def forward(self, token: Tensor, position: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        subnet, tensors = self.net.select(self.architecture), iter(states)
        cache = self.net.start(subnet)
        cache.past = [self._restored(layer.self_attn, tensors, position) for layer in subnet.layers]
        x = F.embedding(token, subnet.embedding)[:, None] * self.net.embedding_scale(subnet.embedding)
        features = self.net.step_embedded(subnet, x + F.embedding(position, self.positions), cache)
        return (F.log_softmax(F.linear(features, subnet.output), -1), *flat(cache.past))


def language_parts(net: LanguageNet, architecture: Architecture, max_length: int) -> tuple[ExportModule, ExportModule]:
    """Return a subnet as the parts ``prompt`` and ``decoder_step`` of an export.

    Args:
        max_length: largest number of tokens. Attention or positions may lower it.
    """
    limit = length_limit(SearchSpace.of(architecture, like=net.space), net.config)
    max_length = max_length if limit is None else min(max_length, limit)
    static = static_net(net, architecture, max_length)
    vocab = len(static.embedding.weight)
    attentions = [layer.self_attn for layer in static.select(architecture).layers]
    past, prompt_states = (
        [value for layer, weights in enumerate(attentions) for value in state_values("self", layer, weights, length)]
        for length in ("past", "length")
    )
    scores = Value("log_probs", ("batch", vocab))
    lengths = [OpenDim("past", 0, max_length - 1)] if any("past" in value.shape for value in past) else []
    return (
        ExportModule(
            "prompt",
            Prompt(static, architecture),
            (Value("tokens", ("batch", "length"), "token", vocab),),
            (scores, *prompt_states),
            (OpenDim("batch"), OpenDim("length", 1, max_length)),
        ),
        ExportModule(
            "decoder_step",
            DecoderStep(static, architecture, max_length),
            (Value("token", ("batch",), "token", vocab), Value("position", (), "token", max_length), *past),
            (scores, *next_values(past)),
            (OpenDim("batch"), *lengths),
        ),
    )


def part_inputs(part: ExportModule, length: int, batch: int, stream: torch.Generator) -> tuple[Tensor, ...]:
    return tuple(value.example({"batch": batch, "length": length, "past": length}, stream) for value in part.inputs)


def language_info(prompt: ExportModule, step: ExportModule) -> dict[str, Any]:
    (max_length,) = (dim.largest for dim in prompt.dims if dim.name == "length")
    return {
        "kind": "language",
        "caches": cache_info(step.inputs[2:]),
        "vocabulary": step.inputs[0].below,
        "limits": {"tokens": max_length},
        "padding": "none: the prompts of a batch are equally long",
    }
