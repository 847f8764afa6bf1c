"""Language models: what each position reads, all positions and step by step, extraction, depth and positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # private: the one way to watch operations  # noqa: PLC2701

from nas_core.errors import CheckpointError, ConfigError
from nas_core.layers.attention import LinearAttention
from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.models.language.export import static_net
from nas_core.models.language.net import length_limit
from nas_core.space import Architecture, SearchSpace, get_space
from tests.models.language.tiny import (
    KINDS,
    SPACE,
    VOCAB,
    architecture,
    build,
    close,
    network_for,
    sentences,
)

every_kind = pytest.mark.parametrize("kinds", KINDS)
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "norm first": {"norm_first": True, "tied_output": False, "positions": "learned"},
    "stored": {"first_position": 2, "embedding_scale": 1.0, "activation": "gelu", "final_norm": True,
               "positions": "stored"},
}  # fmt: skip


def stepped(net: LanguageNet, chosen: Architecture, tokens: Tensor, prompt: int = 0) -> Tensor:
    """Logits (B, T - prompt + 1 or T, V), one position after the other behind a prompt that is read at once."""
    subnet = net.select(chosen)
    found, cache = [], net.start(subnet)
    if prompt:
        features, cache = net.read(subnet, tokens[:, :prompt])
        found = [F.linear(features, subnet.output)]
    found += [net.step(subnet, tokens[:, at], cache) for at in range(prompt, tokens.shape[1])]
    assert cache.length == tokens.shape[1]
    return torch.stack(found, 1)


@pytest.mark.parametrize(("kinds", "mos"), [*((kinds, "none") for kinds in KINDS), ("mixed", "layer"),
                                            ("mixed", "neuron")])  # fmt: skip
@torch.no_grad()
def test_steps_equal_all_positions_at_once(kinds: str, mos: str) -> None:
    net, chosen, tokens = build(mos).eval(), architecture(kinds), sentences(3, 45)
    whole = net(net.select(chosen), tokens)
    close(stepped(net, chosen, tokens), whole, 2e-5)
    for prompt in (1, 20, 44):
        close(stepped(net, chosen, tokens, prompt), whole[:, prompt - 1 :], 2e-5)


def test_a_long_sequence_makes_no_table_of_all_pairs() -> None:
    """Of softmax, local and linear attention, training too."""
    net, chosen = network_for(8192, "softmax", "local", "linear")
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            found = func(*args, **(kwargs or {}))
            tensors = found if isinstance(found, tuple | list) else [found]
            largest = max(largest, *(t.numel() for t in tensors if isinstance(t, Tensor)), 0)
            return found

    with Watch():
        net(net.select(chosen), sentences(1, 8192)).sum().backward()
    assert largest < 8192 * 8192 / 16


def test_a_layer_is_torchs_own() -> None:
    """A network of softmax alone is torch's encoder with a causal mask."""
    space = get_space("language_small")
    net = LanguageNet(SearchSpace.of(space.smallest(), like=space), VOCAB, LanguageConfig(norm_first=True)).eval()
    subnet, tokens = net.select(space.smallest()), sentences(2, 11)
    width, heads = space.smallest().number("embed_dim"), space.smallest().numbers("heads")[0]
    x = F.embedding(tokens, subnet.embedding) * width**0.5 + net.positions_at(0, 11, width)
    for weights in subnet.layers:
        q, k, v = (
            part.view(2, 11, heads, 32).transpose(1, 2)
            for part in F.linear(F.layer_norm(x, (width,), *weights.self_attn_norm), *weights.self_attn.in_proj).chunk(
                3, -1
            )
        )
        scores = (q @ k.mT / 32**0.5).masked_fill(torch.ones(11, 11).triu(1) > 0, float("-inf"))
        x = x + F.linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), *weights.self_attn.out_proj)
        hidden = F.relu(F.linear(F.layer_norm(x, (width,), *weights.ffn_norm), *weights.ffn.fc1))
        x = x + F.linear(hidden, *weights.ffn.fc2)
    assert subnet.norm is not None
    close(net(subnet, tokens), F.layer_norm(x, (width,), *subnet.norm) @ subnet.embedding.T)


@torch.no_grad()
def test_rows_of_a_cache_move() -> None:
    net, chosen, tokens = build().eval(), architecture(), sentences(3, 24)
    subnet = net.select(chosen)
    _, cache = net.read(subnet, tokens[:, :20])
    order = torch.tensor([2, 2, 0])
    kept = cache.copy()
    cache.reorder(order)
    moved = torch.cat([tokens[order, :20], tokens[:, 20:]], 1)
    for each, whole in ((cache, moved), (kept, tokens)):
        expected = net(subnet, whole)
        for at in range(20, 24):
            close(net.step(subnet, whole[:, at], each), expected[:, at], 2e-5)


def test_how_far_networks_read() -> None:
    linear = build()
    assert length_limit(linear.space, linear.config) == 60
    softmax = Architecture({**SPACE.largest().to_dict(), "attention": ["softmax", "local"] * 2})
    own = SearchSpace.of(softmax, like=SPACE)
    assert length_limit(own, LanguageConfig()) is None
    assert length_limit(own, LanguageConfig(positions="learned")) == 60
    with pytest.raises(ConfigError, match="max_length 60"):
        linear(linear.select(SPACE.smallest()), sentences(1, 61))
    stored = build(space=own, positions="learned")
    with pytest.raises(ConfigError, match="a sequence of 61 tokens, but positions are stored for 60"):
        stored(stored.select(softmax), sentences(1, 61))
    attention: Any = build(linear=LinearAttention(7, "rms")).layers[0].self_attn
    assert attention["linear"].kind == LinearAttention(60, "rms")


def test_the_supernets_width_travels_with_the_weights() -> None:
    net = build()
    small = static_net(net, architecture(), 60)
    assert small.positions.width == 16 and len(small.positions.table) == 60
    state = net.static_state(architecture())
    static = LanguageNet(SearchSpace.of(architecture(), like=SPACE), VOCAB)
    static.load_state_dict(state)
    assert static.positions.width == 16
    with pytest.raises(CheckpointError, match="reference_width"):
        static.load_state_dict({**state, "reference_width": torch.ones(2)})
