"""Networks with experts: limits in which they are plain HAT, routing, and half precision."""

from __future__ import annotations

import pytest
import torch

from nas_core.layers import MoSConfig
from nas_core.models.translation import TranslationConfig, TranslationNet
from tests.models.translation.tiny import (
    ARCHITECTURES,
    SOURCE_VOCAB,
    SPACE,
    VOCAB,
    build,
    every_architecture,
    sentences,
)


def copy_shared(target: TranslationNet, source: TranslationNet) -> None:
    """All parameters that both have; feed-forward weights as expert 1."""
    state = source.state_dict()
    for name, tensor in target.state_dict().items():
        if "routers" not in name:
            tensor.copy_(state[name] if tensor.shape == state[name].shape else state[name].expand_as(tensor))


@pytest.mark.parametrize("kind", ["layer", "neuron"])
@every_architecture
def test_one_expert_is_hat(kind: str, name: str) -> None:
    """In float64: a mixed weight is contiguous, HAT's is a slice, and processors may multiply them in another order."""
    hat = build().double()
    mos = TranslationNet(
        SPACE, SOURCE_VOCAB, VOCAB, TranslationConfig(mos=MoSConfig(kind=kind, experts=1, router_hidden=4))
    ).double()
    copy_shared(mos, hat)
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    outputs = []
    for net in (mos, hat):
        output = net(net.select(ARCHITECTURES[name]), source, target)
        output.square().sum().backward()
        outputs.append(output)
    exact = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(*outputs, **exact)
    of_mos = dict(mos.named_parameters())
    for parameter, tensor in hat.named_parameters():
        other = of_mos[parameter].grad
        assert (other is None) == (tensor.grad is None), parameter
        if other is not None and tensor.grad is not None:
            torch.testing.assert_close(other.view_as(tensor), tensor.grad, **exact, msg=parameter)
