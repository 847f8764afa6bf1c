"""The translation network against a plain reading of HAT; padding, dropout, copies and wrong input."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ArchitectureError, CheckpointError, SpaceError
from nas_core.layers.attention.softmax import naive_attention
from nas_core.layers.positions import sinusoids
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.models.translation.net import Subnet
from nas_core.space import Architecture, Choice, SearchSpace, translation_space
from tests.models.translation.tiny import (
    ARCHITECTURES,
    PAD,
    SOURCE_VOCAB,
    SPACE,
    VOCAB,
    build,
    close,
    every_architecture,
    extract,
    sentences,
)


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


def test_arbitrary_attention_reads_what_it_says() -> None:
    """Layer outputs last first; only as many as some decoder layer reads are kept."""
    net = build()
    largest = SPACE.largest().to_dict()
    source = sentences(5, 3)
    kept = {}
    for option in (-1, 1, 2):
        subnet = net.select(Architecture({**largest, "decoder.arbitrary_cross": [-1, option, -1]}))
        memory = net.encode(subnet, source)
        kept[option] = memory.outputs
        cache = net.start(subnet, memory)
        reads = {-1: 1, 1: 2, 2: 3}[option]
        assert len(memory.outputs) == reads
        assert [pair[0].shape[2] for pair in cache.cross] == [5, 5 * reads, 5]
        mask = cache.masks[1]
        assert mask is not None
        assert torch.equal(mask[:, 0, 0], torch.cat([source.ne(PAD)] * reads, 1))
    for outputs in kept.values():
        for output, same in zip(outputs, kept[2], strict=False):
            assert torch.equal(output, same)
    assert not torch.allclose(kept[2][0], kept[2][1])


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


@torch.no_grad()
def test_target_padding_on_the_right_changes_nothing() -> None:
    net = build().eval()
    subnet = net.select(SPACE.largest())
    source, target = sentences(5, 5), sentences(6, 3, seed=1)
    close(net(subnet, source[1:], target[1:, :3])[0], net(subnet, source, target)[1, :3])


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


def test_deepcopy_is_independent() -> None:
    net = build("neuron").eval()
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    expected = net(net.select(SPACE.smallest()), source, target)
    twin = copy.deepcopy(net)
    assert torch.equal(twin(twin.select(SPACE.smallest()), source, target), expected)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(2)
    assert torch.equal(net(net.select(SPACE.smallest()), source, target), expected)
    assert not torch.equal(twin(twin.select(SPACE.smallest()), source, target), expected)


def test_the_network_remembers_no_architecture() -> None:
    net = build("layer").eval()
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    first = net.select(ARCHITECTURES["mixed"])
    expected = net(first, source, target)
    net(net.select(SPACE.smallest()), source, target)
    assert torch.equal(net(first, source, target), expected)


def test_long_sentences_enlarge_the_tables() -> None:
    net = build().eval()
    with torch.no_grad():
        output = net(net.select(SPACE.smallest()), sentences(300), sentences(280))
    assert output.shape == (1, 280, VOCAB)
    assert torch.isfinite(output).all()


def test_wrong_input_is_explained() -> None:
    net = build()
    with pytest.raises(ArchitectureError, match=r"encoder.embed_dim = 14.*choose from \[16, 12\]"):
        net.select(Architecture({**SPACE.largest().to_dict(), "encoder.embed_dim": 14}))
    with pytest.raises(SpaceError, match=r"lacks|no gene"):
        TranslationNet(SearchSpace("other", [Choice.make("width", [1, 2])]), VOCAB, VOCAB)
    with pytest.raises(SpaceError, match="one joint vocabulary, got 23 source and 19 target"):
        TranslationNet(SPACE, SOURCE_VOCAB, VOCAB, TranslationConfig(share_all_embeddings=True))


def test_weights_of_another_space_are_refused() -> None:
    wider = translation_space(
        "wider",
        embed_dims=(20, 12),
        ffn_dims=(24, 16, 8),
        heads=(4, 2),
        encoder_layers=(3, 2, 1),
        decoder_layers=(3, 2, 1),
        qkv_dim=8,
    )
    net, other = build(), build(space=wider)
    with pytest.raises(RuntimeError, match=r"size mismatch for source_embedding\.weight"):
        net.load_state_dict(other.state_dict())
    with pytest.raises(RuntimeError, match=r"Unexpected key.*routers"):
        net.load_state_dict(build("layer").state_dict())
    with pytest.raises(CheckpointError, match=r"reference_widths has shape \(3,\), expected \(2,\)"):
        net.load_state_dict({**net.state_dict(), "reference_widths": torch.tensor([1, 2, 3])})
