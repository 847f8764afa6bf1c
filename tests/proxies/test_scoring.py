"""Side effects of proxies, seeds, bad input, and proxies of other distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.graph import GraphError
from nas_core.proxies import PROXIES, Trial, zero_cost
from nas_core.proxies.networks import NasBench201Proxies, SpaceProxies
from nas_core.space.image import image_space

OWN = ("params", "flops", "synflow", "nwot", "jacov", "grad_norm", "snip")


class OneHot(nn.Module):
    def forward(self, tokens: Tensor) -> Tensor:
        return nn.functional.one_hot(tokens, 9).float()


def network() -> nn.Sequential:
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Flatten(1), nn.Linear(216, 4)
    )
    net[0].weight.requires_grad_(False)
    return net.train()


def images(batch: int = 4) -> Tensor:
    return torch.randn(batch, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_scores_are_finite_and_repeatable() -> None:
    scores = zero_cost(network(), images(), seed=5)
    assert list(scores)[: len(OWN)] == list(OWN) and all(isinstance(score, float) for score in scores.values())
    assert zero_cost(network().eval(), images(), seed=5) == scores, "its mode does not matter"
    other = zero_cost(network(), images(), seed=6)  # other targets, which only these two read
    assert {name for name in OWN if other[name] != scores[name]} == {"grad_norm", "snip"}


def test_a_proxy_does_not_depend_on_the_others() -> None:
    together = zero_cost(network(), images())
    for name in OWN:
        assert zero_cost(network(), images(), proxies=[name]) == {name: together[name]}


def test_the_network_and_the_random_streams_stay_as_they_were() -> None:
    net, inputs = network(), images()
    net[3].eval()
    net(images()).sum().backward()
    state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    gradients = [None if p.grad is None else p.grad.clone() for p in net.parameters()]
    needs, modes = [p.requires_grad for p in net.parameters()], [m.training for m in net.modules()]
    stream, before = torch.get_rng_state(), inputs.clone()
    zero_cost(net, inputs, torch.tensor([0, 1, 2, 3]))
    assert all(tensor.equal(state[name]) for name, tensor in net.state_dict().items())
    for parameter, gradient in zip(net.parameters(), gradients, strict=True):
        assert (parameter.grad is None) == (gradient is None) and (gradient is None or gradient.equal(parameter.grad))
    assert needs == [p.requires_grad for p in net.parameters()]
    assert modes == [m.training for m in net.modules()]
    assert torch.get_rng_state().equal(stream) and inputs.equal(before) and not inputs.requires_grad


def test_several_inputs_and_several_outputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 8), nn.Linear(5, 8)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            hidden = torch.relu(self.first(x) + self.second(y))
            return hidden, hidden[:, :4]

    assert set(OWN) <= set(zero_cost(Two(), [torch.randn(4, 3), torch.randn(4, 5)]))


def failing() -> nn.Sequential:
    net = network()
    net[-1].weight.data[0, 0] = torch.nan
    return net


SIZES: dict[str, Any] = {"layers": (1,), "embed_dims": (8,), "ffn_dims": (8,), "heads": (2,), "head_dim": 4}
IMAGES = image_space("images", **SIZES, image_size=16, patch_size=4)
LINEAR, ONE_HOT = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(OneHot(), nn.Linear(9, 3))


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (lambda: zero_cost(network(), images(1)), ConfigError, "(1, 3, 8, 8)"),
        (lambda: zero_cost(network(), [torch.randn(2, 3), torch.randn(3, 3)]), ConfigError, "(2, 3), (3, 3)"),
        (lambda: zero_cost(network(), images(), torch.tensor([0, 1])), ConfigError, "(2,)"),
        (lambda: zero_cost(network(), images(), torch.tensor([0.0, 1, 2, 3])), ConfigError, "torch.float32"),
        (lambda: zero_cost(network(), images(), torch.tensor([0, 1, 2, 4])), ConfigError, "targets are 0 to 4"),
        (lambda: zero_cost(network(), images(), proxies=["nvot"]), UnknownChoiceError, "nvot"),
        (lambda: zero_cost(nn.Sequential(nn.Conv2d(3, 1, 8), nn.Flatten(0)), images()), ConfigError, "expected logits"),
        (lambda: zero_cost(failing(), images(), proxies=["synflow"]), ConfigError, "synflow of this network is nan"),
        (lambda: zero_cost(LINEAR, torch.randn(2, 2), proxies=["nwot"]), ConfigError, "nwot"),
        (lambda: zero_cost(ONE_HOT, torch.tensor([1, 2]), proxies=["jacov"]), ConfigError, "jacov"),
        (lambda: SpaceProxies(IMAGES, batch=1), ConfigError, "batch is 1"),
        (lambda: SpaceProxies(IMAGES, ["accuracy"]), UnknownChoiceError, "accuracy"),
        (lambda: SpaceProxies(IMAGES, device="gpu"), ConfigError, "gpu"),
        (lambda: NasBench201Proxies(channels=2, cells=1)([1, 2]), GraphError, "six operations per cell"),
        (lambda: NasBench201Proxies.drawn(15626, 0), ConfigError, "15626"),
    ],
)
def test_an_error_is_one_line_with_the_value(call: Callable[[], Any], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)


def depth(trial: Trial) -> float:
    """A proxy of a third party: how many modules there are."""
    return float(len(list(trial.network.modules())))


def test_a_proxy_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROXIES._registered, "depth", depth)  # private: forgotten after the test
    assert zero_cost(network(), images(), proxies=["depth"]) == {"depth": 7.0}
    assert list(zero_cost(network(), images())) == [*OWN, "depth"]
