"""Networks with experts: limits in which they are plain HAT, routing, and half precision."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers import MoSConfig, Router
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.space import Architecture
from tests.models.translation.tiny import (
    ARCHITECTURES,
    MIXTURES,
    PAD,
    SOURCE_VOCAB,
    SPACE,
    VOCAB,
    build,
    close,
    every_architecture,
    sentences,
)


@pytest.mark.parametrize("mos", ["layer", "own", "neuron"])
@torch.no_grad()
def test_routers_run_once_per_architecture(mos: str) -> None:
    net = build(mos).eval()
    calls: list[nn.Module] = []
    routers = [module for module in net.modules() if isinstance(module, Router)]
    assert len(routers) == 6 * (1 if mos == "layer" else 2)
    for router in routers:
        router.register_forward_hook(lambda module, *_: calls.append(module))
    subnet = net.select(SPACE.largest())
    assert len(calls) == len(set(calls)) == len(routers)
    source = sentences(5, 7, 2)
    cache = net.start(subnet, net.encode(subnet, source))
    tokens = torch.full((3,), 2)
    for _ in range(8):
        tokens = net.step(subnet, tokens, cache).argmax(1)
    net(subnet, source, sentences(4, 4, 4))
    assert len(calls) == len(routers)
    calls.clear()
    net.select(SPACE.smallest())
    assert len(calls) == len(routers) // 3  # layers that do not exist are not routed


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


@pytest.mark.parametrize("mos", ["layer", "own", "neuron"])
@torch.no_grad()
def test_equal_experts_make_routers_irrelevant(mos: str) -> None:
    net, hat = build(mos).eval(), build().eval()
    copy_shared(net, hat)
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    for name, architecture in ARCHITECTURES.items():
        expected = hat(hat.select(architecture), source, target)
        close(net(net.select(architecture), source, target), expected, what=name)


@pytest.mark.parametrize("mos", ["layer", "neuron"])
@torch.no_grad()
def test_mixtures_differ_between_architectures(mos: str) -> None:
    net = build(mos).eval()
    largest = SPACE.largest().to_dict()
    shallow = {n: g[:1] if isinstance(g, list) and n[0] == "d" else g for n, g in largest.items()}
    first, second = (net.select(Architecture(genes)) for genes in (largest, {**shallow, "decoder.layers": 1}))
    one, other = first.encoder_layers[0].ffn.fc1.weight, second.encoder_layers[0].ffn.fc1.weight
    assert one.shape == other.shape
    assert float((one - other).abs().max()) > 1e-4


@pytest.mark.parametrize("mos", MIXTURES)
def test_a_step_under_autocast_trains(mos: str) -> None:
    net = build(mos, "all")
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    labels = target.roll(-1, 1).flatten()

    def loss(half: bool) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = net(net.select(SPACE.largest()), source, target)
        assert logits.dtype == (torch.bfloat16 if half else torch.float)
        return nn.functional.cross_entropy(logits.float().flatten(0, 1), labels, ignore_index=PAD)

    net.eval()
    full = float(loss(False).detach())
    assert float(loss(True).detach()) == pytest.approx(full, rel=0.03)
    net.train()
    loss(True).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == torch.float
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any() or "in_proj.bias" in name or "kv_proj.bias" in name, name
    optimizer.step()
    net.eval()
    assert float(loss(False).detach()) < full


@torch.no_grad()
def test_half_precision_weights() -> None:
    net = build("neuron").eval()
    source, target = sentences(5, 7), sentences(4, 6, seed=1)
    expected = net(net.select(SPACE.largest()), source, target)
    half = copy.deepcopy(net).bfloat16()
    output = half(half.select(SPACE.largest()), source, target)
    assert output.dtype == torch.bfloat16
    assert float((output.float() - expected).abs().max()) < 0.1 * float(expected.abs().max())
    assert half.reference_widths.tolist() == [16, 16]
