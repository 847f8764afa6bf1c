"""The masked language model against a plain reading of it; padding, positions, dropout and wrong input."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.positions import sinusoids
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.net import Subnet
from nas_core.space import Architecture
from tests.models.masked_lm.tiny import (
    ARCHITECTURES,
    MIXED,
    PAD,
    SPACE,
    VOCAB,
    build,
    close,
    every_architecture,
    every_form,
    sentences,
)
from tests.naive import naive_attention


def plain_features(net: MaskedLMNet, subnet: Subnet, sentence: Tensor) -> Tensor:
    """Features (T, C) of one sentence without padding, layer by layer."""
    config, width = net.config, subnet.embedding.shape[1]
    scale = math.sqrt(width) if config.embedding_scale is None else config.embedding_scale
    places = config.first_position + torch.arange(len(sentence))
    table = sinusoids(40, 16) if config.positions == "sinusoidal" else net.positions.table
    x = subnet.embedding[sentence] * scale + table[places, :width]

    def normed(x: Tensor, weights: object) -> Tensor:
        return x if weights is None else F.layer_norm(x, (width,), weights[0], weights[1])  # type: ignore[index]

    x = normed(x, subnet.embedding_norm)
    first = config.norm_first
    active = {"gelu": F.gelu, "relu": F.relu}[config.activation]
    for layer in subnet.layers:
        read = normed(x, layer.self_attn_norm) if first else x
        parts = F.linear(read, *layer.self_attn.in_proj).view(len(x), 3, layer.self_attn.heads, -1).permute(1, 2, 0, 3)
        read = naive_attention(*parts[:, None], None)[0].transpose(0, 1).flatten(1)
        x = x + F.linear(read, *layer.self_attn.out_proj)
        x = x if first else normed(x, layer.self_attn_norm)
        read = normed(x, layer.ffn_norm) if first else x
        x = x + F.linear(active(F.linear(read, *layer.ffn.fc1)), *layer.ffn.fc2)
        x = x if first else normed(x, layer.ffn_norm)
    return normed(x, subnet.norm)


@every_form
@every_architecture
@torch.no_grad()
def test_features_and_logits_are_those_of_the_plain_reading(form: str, name: str) -> None:
    net = build(form)
    subnet = net.select(ARCHITECTURES[name])
    tokens = sentences()
    features, logits = net.encode(subnet, tokens), net(subnet, tokens)
    for row, sentence in enumerate(tokens):
        real = sentence != PAD
        expected = plain_features(net, subnet, sentence[real])
        close(features[row, real], expected)
        hidden = F.linear(expected, *subnet.head.dense)
        hidden = F.gelu(hidden) if net.config.activation == "gelu" else F.relu(hidden)
        hidden = F.layer_norm(hidden, hidden.shape[-1:], subnet.head.norm.weight, subnet.head.norm.bias)
        close(logits[row, real], hidden @ subnet.output.T + subnet.head.bias)
        for head, weights in subnet.classification_heads.items():
            classes = net.classify(subnet, features[row : row + 1], head)
            first = torch.tanh(F.linear(features[row, :1], *weights.dense))
            close(classes, F.linear(first, *weights.out_proj))
    assert logits.shape == (*tokens.shape, VOCAB) and torch.isfinite(features).all()


def test_every_kind_of_attention_ignores_padding() -> None:
    net = build(space=MIXED)
    for kind in ("softmax", "linear"):
        genes = {**MIXED.largest().to_dict(), "attention": [kind] * 3}
        subnet = net.select(Architecture(genes))
        tokens = sentences()
        with torch.no_grad():
            alone = net.encode(subnet, tokens[:1, :5], padded=False)
            close(net.encode(subnet, tokens[:1])[:, :5], alone, what=kind)
            left = torch.cat([torch.full((1, 3), PAD), tokens[:1, :5]], 1)
            if kind == "softmax":
                close(net.encode(subnet, left)[:, 3:], alone)


def test_positions_are_counted_without_padding_and_end_where_they_are_stored() -> None:
    net = build(stored_positions=6)
    subnet = net.select(SPACE.largest())
    tokens = torch.full((2, 9), PAD)
    tokens[0, 2:8] = 5
    assert net.encode(subnet, tokens).shape == (2, 9, 16)
    tokens[1, :7] = 5
    with pytest.raises(ConfigError, match="7 tokens exceeds the 6 position embeddings"):
        net.encode(subnet, tokens)
    with pytest.raises(ConfigError, match="9 tokens exceeds the 6 position embeddings"):
        net.encode(subnet, tokens, padded=False)


def test_a_head_is_added_or_replaced() -> None:
    net = build("untied")
    before = net.classification_heads["topic"].dense.weight
    net.set_classification_head("topic", 7)
    net.set_classification_head("third", 2, 3)
    assert [head.name for head in net.config.classification_heads] == ["small", "topic", "third"]
    subnet = net.select(SPACE.smallest())
    assert subnet.classification_heads["topic"].out_proj.weight.shape == (7, 12)
    assert subnet.classification_heads["third"].dense.weight.shape == (3, 12)
    assert net.classification_heads["topic"].dense.weight is not before
