"""Routers: the contract of every kind, and the sizes and the start of the two of Mixture-of-Supernets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers import ROUTERS, MoSConfig, Router
from tests.contracts.router import RouterContract


class TestLayerRouter(RouterContract):
    kind = "layer"


class TestNeuronRouter(RouterContract):
    kind = "neuron"


def test_every_own_kind_is_held_to_the_contract() -> None:
    assert {"layer", "neuron"} == set(ROUTERS.names())


def by_hand(router: Router, encoding: Tensor) -> Tensor:
    """All logits of a router without dropout."""
    x = encoding
    for layer in router.hidden:
        x = (layer.weight @ x + layer.bias).clamp(min=0)
    return router.out.weight @ x + router.out.bias


def router_of(kind: str, rows: int = 6, **settings: Any) -> Router:
    return ROUTERS.get(kind)(10, MoSConfig(kind=kind, **settings), rows)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_router_depth_and_output(depth: int, kind: str) -> None:
    torch.manual_seed(0)
    router = router_of(kind, experts=3, router_hidden=8, router_layers=depth)
    linears = [module for module in router.modules() if isinstance(module, nn.Linear)]
    assert len(linears) == depth
    encoding = torch.rand(10)
    mixing = router(encoding, 4)
    logits = by_hand(router, encoding)
    expected = logits.softmax(0) if kind == "layer" else logits[: 3 * 4].view(4, 3).softmax(1)
    torch.testing.assert_close(mixing, expected)


def test_only_the_logits_of_neurons_in_use_matter_and_their_blocks_are_contiguous() -> None:
    torch.manual_seed(0)
    router = router_of("neuron", experts=2, router_hidden=8)
    encoding = torch.rand(10)
    before = router(encoding, 4)
    with torch.no_grad():
        router.out.weight[8:] += 1.0
        router.out.bias[8:] -= torch.arange(4.0)
    assert torch.equal(router(encoding, 4), before)
    assert not torch.allclose(router(encoding, 6)[4:], router(encoding, 4)[:2])
    with torch.no_grad():
        router.out.bias[2 * 2 + 1] += 50.0  # expert 2 of neuron 3
    after = router(encoding, 4)
    torch.testing.assert_close(after[2], torch.tensor([0.0, 1.0]))
    assert torch.equal(after[[0, 1, 3]], before[[0, 1, 3]])
    router(encoding, 4)[:, 0].sum().backward()
    gradient = router.out.weight.grad
    assert gradient is not None
    assert gradient[:8].any()
    assert not gradient[8:].any()


def test_routers_start_like_the_authors() -> None:
    torch.manual_seed(0)
    neuron, layer = (router_of(kind, 300, router_hidden=100) for kind in ("neuron", "layer"))
    assert not neuron.out.bias.any()
    bound = (6 / (100 + 600)) ** 0.5
    assert 0.98 * bound < float(neuron.out.weight.detach().abs().max()) <= bound
    for router in (neuron, layer):
        assert 0.9 * 10**-0.5 < float(router.hidden[0].weight.detach().abs().max()) <= 10**-0.5  # torch's default
        assert router.hidden[0].bias.any()
    assert layer.out.bias.any()
    assert 0.08 < float(layer.out.weight.detach().abs().max()) <= 0.1
    mixing = neuron(torch.full((10,), 0.9), 300).detach()
    assert 0.0 < float((mixing - 0.5).abs().max()) < 0.2


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_router_dropout_acts_in_training_only(kind: str) -> None:
    torch.manual_seed(0)
    router = router_of(kind, 5, router_dropout=0.5, router_hidden=64)
    encoding = torch.rand(10)
    assert not torch.equal(router(encoding, 5), router(encoding, 5))
    router.eval()
    assert torch.equal(router(encoding, 5), router(encoding, 5))
    logits = by_hand(router, encoding)
    torch.testing.assert_close(router(encoding, 5).flatten(), logits.view(-1, 2).softmax(1).flatten())
