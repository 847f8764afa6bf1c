"""The translation network against a plain reading of HAT; padding, dropout, copies and wrong input."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers.positions import sinusoids
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.net import Subnet
from tests.models.translation.tiny import (
    ARCHITECTURES,
    PAD,
    VOCAB,
    build,
    close,
    every_architecture,
    extract,
    sentences,
)
from tests.naive import naive_attention


def naive_forward(net: TranslationNet, subnet: Subnet, source: Tensor, target: Tensor) -> Tensor:
    """Logits, written down from the description of HAT: no caches, no fused projections, no shortcuts."""
    first = net.config.norm_first

    def linear(x: Tensor, affine: Any) -> Tensor:
        return x @ affine[0].t() + affine[1]

    def norm(x: Tensor, affine: Any) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * affine[0] + affine[1]

    def embed(tokens: Tensor, table: Tensor) -> Tensor:
        positions = sinusoids(tokens.shape[1], 16)[:, : table.shape[1]]
        rows = []
        for row in tokens:
            order = row.ne(PAD).cumsum(0) - 1
            rows.append(table[row] * row.ne(PAD)[:, None] * math.sqrt(table.shape[1]) + positions[order.clamp(min=0)])
        return torch.stack(rows)

    def attention(x: Tensor, y: Tensor, weights: Any, keys: Tensor | None, causal: bool) -> Tensor:
        if hasattr(weights, "in_proj"):
            q, k, v = linear(x, weights.in_proj).chunk(3, -1)
        else:
            q, (k, v) = linear(x, weights.q_proj), linear(y, weights.kv_proj).chunk(2, -1)
        q, k, v = (torch.stack(z.chunk(weights.heads, -1), 1) for z in (q, k, v))
        mask = None if keys is None else keys[:, None, None]
        return linear(torch.cat(naive_attention(q, k, v, mask, causal).unbind(1), -1), weights.out_proj)

    def sublayer(x: Tensor, affine: Any, function: Any) -> Tensor:
        return x + function(norm(x, affine)) if first else norm(x + function(x), affine)

    def ffn(weights: Any) -> Any:
        return lambda x: linear(linear(x, weights.fc1).clamp(min=0), weights.fc2)

    tokens = source.ne(PAD)
    x = embed(source, subnet.source_embedding)
    outputs = []
    for weights in subnet.encoder_layers:
        x = sublayer(x, weights.self_attn_norm, lambda y, w=weights: attention(y, y, w.self_attn, tokens, False))
        x = sublayer(x, weights.ffn_norm, ffn(weights.ffn))
        outputs.append(x)
    if subnet.encoder_norm is not None:
        outputs = [norm(output, subnet.encoder_norm) for output in outputs]
    x = embed(target, subnet.target_embedding)
    for weights, option in zip(
        subnet.decoder_layers, subnet.architecture.numbers("decoder.arbitrary_cross"), strict=True
    ):
        read = {-1: outputs[-1:], 1: outputs[-2:], 2: outputs[-3:]}[option][::-1]
        memory, keys = torch.cat(read, 1), torch.cat([tokens] * len(read), 1)
        x = sublayer(x, weights.self_attn_norm, lambda y, w=weights: attention(y, y, w.self_attn, None, True))
        x = sublayer(
            x, weights.cross_attn_norm, lambda y, w=weights, m=memory, k=keys: attention(y, m, w.cross_attn, k, False)
        )
        x = sublayer(x, weights.ffn_norm, ffn(weights.ffn))
    if subnet.decoder_norm is not None:
        x = norm(x, subnet.decoder_norm)
    return x @ subnet.output.t()


@every_architecture
@pytest.mark.parametrize("norm_first", [False, True])
def test_equals_a_plain_reading(name: str, norm_first: bool) -> None:
    net = build(norm_first=norm_first)
    source, target = sentences(5, 7, 2), sentences(6, 4, 3, seed=1)
    weighting = torch.randn(3, 6, VOCAB) * target.ne(PAD)[..., None]
    gradients = []
    outputs = []
    for forward in (net, lambda *inputs: naive_forward(net, *inputs)):
        net.zero_grad()
        output = forward(net.select(ARCHITECTURES[name]), source, target)
        (output * weighting).sum().backward()
        outputs.append(output[target.ne(PAD)])
        gradients.append({n: p.grad for n, p in net.named_parameters()})
    close(*outputs)
    for parameter, want in gradients[1].items():
        got = gradients[0][parameter]
        assert (got is None) == (want is None), parameter
        if got is not None and want is not None:
            close(got, want, 1e-4, parameter)


@every_architecture
@torch.no_grad()
def test_padding_changes_nothing(name: str) -> None:
    net = build("layer").eval()
    subnet = net.select(ARCHITECTURES[name])
    lengths, target = (5, 7, 2), sentences(4, 4, 4, seed=1)
    right, left = (net(subnet, sentences(*lengths, left=side), target) for side in (False, True))
    close(left, right)
    for row, length in enumerate(lengths):
        alone = sentences(*lengths)[row : row + 1, :length]
        for padded in (True, False):
            memory = net.encode(subnet, alone, padded)
            assert (memory.tokens is None) != padded
            close(net.decode(subnet, target[row : row + 1], memory), right[row : row + 1])


def test_dropout_is_scaled_by_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """As HAT: by the subnet's width over the supernet's, each side by its own; an extracted subnet likewise."""
    net = build(dropout=0.4, attention_dropout=0.2, activation_dropout=0.1)
    seen: set[tuple[int, float]] = set()
    attention: set[float] = set()
    plain = nn.functional.scaled_dot_product_attention

    def dropout(x: Tensor, p: float) -> Tensor:
        seen.add((x.shape[-1], round(p, 6)))
        return x

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, is_causal: bool) -> Tensor:
        attention.add(p)
        return plain(q, k, v, mask, 0.0, is_causal=is_causal)

    monkeypatch.setattr(nn.functional, "dropout", dropout)
    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", attend)
    architecture = ARCHITECTURES["mixed"]  # widths 12 and 16, hidden 8, 16, 24
    hidden = {(f, p) for p, fs in ((0.075, (8, 24, 16)), (0.1, (16, 8, 24))) for f in fs}
    expected = hidden | {(12, 0.3), (16, 0.4)}
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    net(net.select(architecture), source, target)
    assert seen == expected
    assert attention == {0.2}
    static = extract(net, architecture)
    seen.clear()
    static(static.select(architecture), source, target)
    assert seen == expected
    seen.clear()
    attention.clear()
    net.eval()
    net(net.select(architecture), source, target)
    assert seen == set()
    assert attention == {0.0}
