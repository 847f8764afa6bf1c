"""Static networks against the subnets that they were extracted from, outputs and gradients."""

from __future__ import annotations

import pytest
import torch

from nas_core.layers import MoSLinear
from nas_core.layers.positions import sinusoids
from nas_core.layers.weights import named_tensors
from nas_core.models.translation import TranslationNet
from nas_core.space import SearchSpace
from tests.models.translation.tiny import (
    ARCHITECTURES,
    SOURCE_VOCAB,
    SPACE,
    VOCAB,
    build,
    close,
    extract,
    sentences,
)


@pytest.mark.parametrize("mos", ["layer", "own", "neuron"])
def test_experts_receive_their_share_of_the_static_gradient(mos: str) -> None:
    net, architecture = build(mos).eval(), ARCHITECTURES["mixed"]
    static = extract(net, architecture)
    source, target = sentences(5, 7, 2), sentences(6, 4, 3, seed=1)
    for model, chosen in ((net, architecture), (static, static.space.largest())):
        model(model.select(chosen), source, target).square().mean().backward()
    encoding = torch.from_numpy(SPACE.encode(architecture)[0])
    for layer, small in zip(
        [*net.encoder_layers, *net.decoder_layers], [*static.encoder_layers, *static.decoder_layers], strict=True
    ):
        rows, columns = small.ffn.fc1.weight.shape
        first, second = layer.ffn.routing(columns, rows, encoding)
        pairs = ((layer.ffn.fc1, small.ffn.fc1, first), (layer.ffn.fc2, small.ffn.fc2, second))
        for experts, plain, mixing in pairs:
            assert isinstance(experts, MoSLinear)
            assert experts.weight.grad is not None
            assert experts.bias.grad is not None
            for index in range(len(experts.weight)):
                share = mixing[..., index].detach().expand(len(plain.weight))
                weight, bias = torch.zeros_like(experts.weight[0]), torch.zeros_like(experts.bias[0])
                weight[: plain.weight.shape[0], : plain.weight.shape[1]] = share[:, None] * plain.weight.grad
                bias[: len(share)] = share * plain.bias.grad
                close(experts.weight.grad[index], weight)
                close(experts.bias.grad[index], bias)
        for parameter in layer.ffn.routers.parameters():
            assert parameter.grad is not None
            assert parameter.grad.any()


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


def test_positions_of_the_supernet_travel_with_the_weights() -> None:
    architecture = ARCHITECTURES["mixed"]  # 12 source and 16 target channels
    static = extract(build(), architecture)
    assert static.reference_widths.tolist() == [16, 16]
    assert torch.equal(static.source_positions(300, 12), sinusoids(300, 16)[:, :12])
    fresh = TranslationNet(SearchSpace.of(architecture), SOURCE_VOCAB, VOCAB)
    assert fresh.reference_widths.tolist() == [12, 16]
    assert torch.equal(fresh.source_positions(4, 12), sinusoids(4, 12))
    again = TranslationNet(SearchSpace.of(architecture), SOURCE_VOCAB, VOCAB)
    again.load_state_dict(static.state_dict())
    assert torch.equal(again.source_positions(4, 12), sinusoids(4, 16)[:, :12])
    given = TranslationNet(SearchSpace.of(architecture), SOURCE_VOCAB, VOCAB, reference_widths=(16, 20))
    assert torch.equal(given.target_positions(4, 16), sinusoids(4, 20)[:, :16])
