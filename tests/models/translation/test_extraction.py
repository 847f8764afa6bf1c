"""Static networks against the subnets that they were extracted from, outputs and gradients."""

from __future__ import annotations

import torch

from nas_core.layers.weights import named_tensors
from tests.models.translation.tiny import (
    SPACE,
    build,
)


def test_extraction_switches_router_dropout_off_and_leaves_the_mode() -> None:
    net = build("neuron")
    states = [net.static_state(SPACE.largest()) for _ in range(2)]
    assert net.training
    assert all(module.training for module in net.modules())
    net.eval()
    states.append(net.static_state(SPACE.largest()))
    assert not net.training
    for state in states[1:]:
        assert all(torch.equal(tensor, states[0][name]) for name, tensor in state.items())
    net.train()
    key = "encoder_layers.0.ffn.fc1.weight"
    assert not torch.equal(dict(named_tensors(net.select(SPACE.largest())))[key], states[0][key])
