"""A language model as two plain modules, which file formats can hold: a prompt and a decoding step.

The prompt is read all at once and gives the caches behind it, the step takes and gives them, so that a loop outside
keeps nothing else: the tensors of the states of the kinds of attention, such as keys and values of past positions for
softmax and sums of constant size for linear attention. Decoding may also begin with empty caches. All caches have the
batch first; beam search takes rows of them.

Shapes: B batch, T length, H heads, D head dim, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.export.parts import OpenDim, Part, Value
from nas_core.layers.attention.kinds import AttentionState, StateValue
from nas_core.layers.attention.projections import SelfAttentionWeights
from nas_core.layers.positions import SinusoidalPositions
from nas_core.models.language.net import LanguageNet, length_limit
from nas_core.space import Architecture, SearchSpace


def static_net(net: LanguageNet, architecture: Architecture, longest: int) -> LanguageNet:
    """The static network of ``architecture`` in evaluation mode; its table of positions has just the width that it
    reads, and as many rows as the longest sequence."""
    static = LanguageNet(SearchSpace.of(architecture, like=net.space), len(net.embedding.weight), net.config.static())
    static.load_state_dict(net.static_state(architecture))
    if isinstance(static.positions, SinusoidalPositions):
        static.positions.table = net.positions_at(0, longest, architecture.number("embed_dim")).clone()
        static.config = replace(static.config, first_position=0)  # its table begins with the first token
    return static.eval()


class Prompt(nn.Module):
    """Tokens ``(B, T)`` without padding to the log-probabilities ``(B, V)`` of the next token, and the caches."""

    def __init__(self, net: LanguageNet, architecture: Architecture) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        subnet = self.net.select(self.architecture)
        features, cache = self.net.read(subnet, tokens)
        return (F.log_softmax(F.linear(features, subnet.output), -1), *_flat(cache.past))


class DecoderStep(nn.Module):
    """The next token ``(B,)``, its position and the caches to log-probabilities ``(B, V)`` and the caches after it."""

    positions: Tensor

    def __init__(self, net: LanguageNet, architecture: Architecture, longest: int) -> None:
        super().__init__()
        self.net, self.architecture = net, architecture
        subnet = net.select(architecture)
        self.kinds = list(dict.fromkeys(layer.self_attn.kind for layer in subnet.layers))
        for index, kind in enumerate(self.kinds):
            self.register_buffer(f"table_{index}", kind.step_table(longest), persistent=False)
        table = net.positions_at(0, longest, architecture.number("embed_dim"))
        self.register_buffer("positions", table.detach(), persistent=False)

    def forward(self, token: Tensor, position: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        subnet, given = self.net.select(self.architecture), iter(rest)
        cache = self.net.start(subnet)
        for index, layer in enumerate(subnet.layers):
            kind = layer.self_attn.kind
            table = getattr(self, f"table_{self.kinds.index(kind)}")
            row = None if table is None else F.embedding(position, table)
            cache.past[index] = kind.restored([next(given) for _ in _kept(layer.self_attn)], position, row)
        x = F.embedding(token, subnet.embedding)[:, None] * self.net.embedding_scale(subnet.embedding)
        features = self.net.step_embedded(subnet, x + F.embedding(position, self.positions), cache)
        return (F.log_softmax(F.linear(features, subnet.output), -1), *_flat(cache.past))


def _flat(states: Sequence[AttentionState | None]) -> list[Tensor]:
    return [tensor for state in states if state is not None for tensor in state.tensors()]


def _kept(weights: SelfAttentionWeights, length: str = "past") -> tuple[StateValue, ...]:
    """The tensors that a layer's attention keeps of so many positions."""
    dim = weights.out_proj.weight.shape[1] // weights.heads
    return weights.kind.state_values(weights.heads, dim, length)


def _values(weights: Sequence[SelfAttentionWeights], length: str) -> list[Value]:
    return [
        Value(f"self_{value.name}_{layer}", value.shape, "positive" if value.positive else "number")
        for layer, each in enumerate(weights)
        for value in _kept(each, length)
    ]


def language_parts(net: LanguageNet, architecture: Architecture, longest: int) -> tuple[Part, Part]:
    """``prompt`` and ``decoder_step`` of a subnet, for sequences of at most so many tokens; attention or positions that
    are made for a longest sequence may lower the limit."""
    limit = length_limit(SearchSpace.of(architecture, like=net.space), net.config)
    longest = longest if limit is None else min(longest, limit)
    static = static_net(net, architecture, longest)
    vocab, attentions = len(static.embedding.weight), [x.self_attn for x in static.select(architecture).layers]
    past, read = _values(attentions, "past"), _values(attentions, "length")
    after = [replace(v, name=f"next_{v.name}", shape=tuple(_grown(dim) for dim in v.shape)) for v in past]
    scores = Value("log_probs", ("batch", vocab))
    lengths = [OpenDim("past", 0, longest - 1)] if any("past" in value.shape for value in past) else []
    return (
        Part(
            "prompt",
            Prompt(static, architecture),
            (Value("tokens", ("batch", "length"), "token", vocab),),
            (scores, *read),
            (OpenDim("batch"), OpenDim("length", 1, longest)),
        ),
        Part(
            "decoder_step",
            DecoderStep(static, architecture, longest),
            (Value("token", ("batch",), "token", vocab), Value("position", (), "token", longest), *past),
            (scores, *after),
            (OpenDim("batch"), *lengths),
        ),
    )


def _grown(dim: int | str) -> int | str:
    return "past + 1" if dim == "past" else dim


def part_inputs(part: Part, length: int, batch: int, stream: torch.Generator) -> tuple[Tensor, ...]:
    """Random inputs for prompts of so many tokens, or for a step behind as many."""
    sizes = {"batch": batch, "length": length, "past": length}
    return tuple(value.example(sizes, stream) for value in part.inputs)


def language_info(prompt: Part, step: Part) -> dict[str, Any]:
    """What a loop around the two files must know, as plain data."""
    (longest,) = (dim.largest for dim in prompt.dims if dim.name == "length")
    return {
        "kind": "language",
        "caches": [
            {
                "input": value.name,
                "output": f"next_{value.name}",
                "start": [0 if dim == "past" else dim for dim in value.shape],
            }
            for value in step.inputs[2:]
        ],
        "vocabulary": step.inputs[0].below,
        "limits": {"tokens": longest},
        "padding": "none: the prompts of a batch are equally long",
    }
