"""Language models: what each position reads, all positions and step by step, extraction, depth and positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode  # private: the one way to watch operations  # noqa: PLC2701

from nas_core.errors import ConfigError
from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.models.language.net import length_limit
from nas_core.space import Architecture, SearchSpace
from tests.models.language.tiny import (
    KINDS,
    SPACE,
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
    results, cache = [], net.start(subnet)
    if prompt:
        features, cache = net.read(subnet, tokens[:, :prompt])
        results = [F.linear(features, subnet.output)]
    results += [net.step(subnet, tokens[:, at], cache) for at in range(prompt, tokens.shape[1])]
    assert cache.length == tokens.shape[1]
    return torch.stack(results, 1)


@pytest.mark.parametrize(("kinds", "mos"), [*((kinds, "none") for kinds in KINDS), ("mixed", "layer"),
                                            ("mixed", "neuron")])  # fmt: skip
@torch.no_grad()
def test_steps_equal_all_positions_at_once(kinds: str, mos: str) -> None:
    net, chosen, tokens = build(mos).eval(), architecture(kinds), sentences(3, 45)
    full = net(net.select(chosen), tokens)
    close(stepped(net, chosen, tokens), full, 2e-5)
    for prompt in (1, 20):
        close(stepped(net, chosen, tokens, prompt), full[:, prompt - 1 :], 2e-5)


def test_a_long_sequence_makes_no_table_of_all_pairs() -> None:
    """Softmax and linear attention, in training too."""
    net, chosen = network_for(8192, "softmax", "linear")
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            tensors = result if isinstance(result, tuple | list) else [result]
            largest = max(largest, *(t.numel() for t in tensors if isinstance(t, Tensor)), 0)
            return result

    with Watch():
        net(net.select(chosen), sentences(1, 8192)).sum().backward()
    assert largest < 8192 * 8192 / 16


def test_how_far_networks_read() -> None:
    linear = build()
    assert length_limit(linear.space, linear.config) == 60
    softmax = Architecture({**SPACE.largest().to_dict(), "attention": ["softmax"] * 4})
    fixed_space = SearchSpace.of(softmax, like=SPACE)
    assert length_limit(fixed_space, LanguageConfig()) is None
    assert length_limit(fixed_space, LanguageConfig(positions="learned")) == 60
    with pytest.raises(ConfigError, match="max_length 60"):
        linear(linear.select(SPACE.smallest()), sentences(1, 61))
    stored = build(space=fixed_space, positions="learned")
    with pytest.raises(ConfigError, match="61 tokens"):
        stored(stored.select(softmax), sentences(1, 61))
