"""Translation networks whose layers choose between all kinds of attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.layers.attention import ATTENTION_KINDS, LinearAttention
from nas_core.space import Architecture, with_attention
from nas_core.space.mformer import ATTENTION_GENES
from tests.models.translation.tiny import SPACE, build, close, sentences

MIXED = with_attention(SPACE, "tiny-mixed", *[ATTENTION_KINDS.names()] * 3)
SETTINGS = {
    "plain": {"linear": LinearAttention(24)},
    "relative": {"linear": LinearAttention(24), "relative_length": 2, "norm_first": True},
}
every_setting = pytest.mark.parametrize("setting", SETTINGS)


def some_architectures() -> list[Architecture]:
    rng = np.random.default_rng(8)
    drawn = [MIXED.sample(rng) for _ in range(3)]
    everywhere = {gene: ["linear"] * 3 for gene in ATTENTION_GENES}
    return [MIXED.largest(), Architecture({**MIXED.largest().to_dict(), **everywhere}), *drawn]


@every_setting
@torch.no_grad()
def test_padding_changes_nothing_and_steps_equal_the_whole(setting: str) -> None:
    """In float64: where positive features hardly overlap, a float32 quotient of small sums has few digits."""
    net = build(space=MIXED, **SETTINGS[setting]).double().eval()
    lengths, target = (5, 7, 2), sentences(6, 6, 6, seed=1)
    for architecture in some_architectures():
        subnet = net.select(architecture)
        sides = [net(subnet, sentences(*lengths, left=left), target) for left in (False, True)]
        close(*sides, 1e-9, "padding")
        source = sentences(*lengths, left=True)
        for row, length in enumerate(lengths):
            alone = net.encode(subnet, source[row : row + 1, -length:], padded=False)
            close(net.decode(subnet, target[row : row + 1], alone), sides[0][row : row + 1], 1e-9, "alone")
        memory = net.encode(subnet, source)
        full = net.decode(subnet, target, memory)
        order = torch.tensor([2, 0, 0])  # another sentence moves into row 1
        cache = net.start(subnet, memory, torch.arange(3))
        for position in range(6):
            if position == 3:
                cache.reorder(order)
                target, full = target[order], full[order]
            close(net.step(subnet, target[:, position], cache), full[:, position], 1e-9, f"step {position}")
        target = sentences(6, 6, 6, seed=1)


def test_lengths_beyond_linear_attention_are_one_line() -> None:
    """The decoder's attention has a longest sentence, the encoder's has none."""
    net = build(space=MIXED, linear=LinearAttention(6)).eval()
    linear, softmax = some_architectures()[1], MIXED.largest()
    net(net.select(softmax), sentences(9), sentences(8))
    memory = net.encode(net.select(linear), sentences(9))
    with pytest.raises(ConfigError, match="max_length 6"):
        net.decode(net.select(linear), sentences(3), memory)
    memory = net.encode(net.select(linear), sentences(5))
    cache = net.start(net.select(linear), memory)
    with pytest.raises(ConfigError, match="outside max_length 6"):
        for token in range(7):
            net.step(net.select(linear), torch.tensor([token + 2]), cache)
