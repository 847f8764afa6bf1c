"""What every proxy leaves as it was, seeds, and inputs that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.proxies import PROXIES, Proxy, Trial, zero_cost

OWN = ("params", "flops", "synflow", "nwot", "jacov", "grad_norm", "snip")


def network() -> nn.Sequential:
    torch.manual_seed(3)
    made = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Flatten(1), nn.Linear(216, 4)
    )
    made[0].weight.requires_grad_(False)
    return made.train()


def images(batch: int = 4) -> Tensor:
    return torch.randn(batch, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_all_of_them_are_finite_and_repeatable() -> None:
    found = zero_cost(network(), images(), seed=5)
    assert list(found)[: len(OWN)] == list(OWN) and all(isinstance(score, float) for score in found.values())
    assert zero_cost(network(), images(), seed=5) == found
    other = zero_cost(network(), images(), seed=6)  # other targets, which only these two read
    assert {name for name in OWN if other[name] != found[name]} == {"grad_norm", "snip"}
    assert zero_cost(network().eval(), images(), seed=5) == found, "its mode does not matter"


def test_each_alone_says_what_it_says_among_the_others() -> None:
    together = zero_cost(network(), images())
    for name in OWN:
        assert zero_cost(network(), images(), proxies=[name]) == {name: together[name]}


def test_the_network_and_the_random_streams_stay_as_they_were() -> None:
    made, inputs = network(), images()
    made[3].eval()
    made(images()).sum().backward()
    state = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    gradients = [None if each.grad is None else each.grad.clone() for each in made.parameters()]
    needs, modes = [each.requires_grad for each in made.parameters()], [each.training for each in made.modules()]
    stream, before = torch.get_rng_state(), inputs.clone()
    zero_cost(made, inputs, torch.tensor([0, 1, 2, 3]))
    assert all(tensor.equal(state[name]) for name, tensor in made.state_dict().items())
    for each, gradient in zip(made.parameters(), gradients, strict=True):
        assert (each.grad is None) == (gradient is None) and (gradient is None or gradient.equal(each.grad))
    assert needs == [each.requires_grad for each in made.parameters()]
    assert modes == [each.training for each in made.modules()]
    assert torch.get_rng_state().equal(stream) and inputs.equal(before) and not inputs.requires_grad


def test_modes_come_back_after_an_error() -> None:
    made = network()
    with pytest.raises(ConfigError):
        zero_cost(made, torch.randn(4, 5, 8, 8))
    assert all(module.training for module in made.modules())


def test_several_inputs_and_several_outputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 8), nn.Linear(5, 8)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            hidden = torch.relu(self.first(x) + self.second(y))
            return hidden, hidden[:, :4]

    assert set(OWN) <= set(zero_cost(Two(), [torch.randn(4, 3), torch.randn(4, 5)]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network": "resnet18"}, "got a str to score; expected a network"),
        ({"network": nn.ReLU()}, "no parameters"),
        ({"inputs": torch.randn(1, 3, 8, 8)}, "of at least 2 samples"),
        ({"inputs": []}, "inputs are no tensors"),
        ({"inputs": [torch.randn(2, 3), torch.randn(3, 3)]}, "the same first dimension"),
        ({"inputs": torch.randn(4, 5, 8, 8)}, r"cannot be run on inputs \(4, 5, 8, 8\)"),
        ({"targets": torch.tensor([0, 1])}, r"targets have shape \(2,\)"),
        ({"targets": torch.tensor([0.0, 1, 2, 3])}, "whole numbers"),
        ({"targets": torch.tensor([0, 1, 2, 4])}, "targets reach from 0 to 4; the network has classes 0 to 3"),
        ({"targets": torch.tensor([0, 1, 2, 3]), "loss": lambda logits, targets: logits}, "no single number"),
        ({"proxies": []}, "expected a list of names"),
        ({"proxies": "nwot"}, "expected a list of names"),
        ({"network": nn.Sequential(nn.Conv2d(3, 1, 8), nn.Flatten(0))}, r"gives shape \(4,\); expected logits"),
    ],
)
def test_wrong_inputs(changes: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"network": network(), "inputs": images(), **changes}
    with pytest.raises(ConfigError, match=said):
        zero_cost(given.pop("network"), given.pop("inputs"), **given)


def test_a_network_with_weights_that_are_no_numbers() -> None:
    made = network()
    made[-1].weight.data[0, 0] = torch.nan
    with pytest.raises(ConfigError, match="synflow of this network is nan"):
        zero_cost(made, images(), proxies=["synflow"])


def test_unknown_proxies_are_refused() -> None:
    with pytest.raises(UnknownChoiceError, match=r"unknown zero-cost proxy 'nvot'.*Did you mean 'nwot'"):
        zero_cost(network(), images(), proxies=["nvot"])


class Depth(Proxy):
    """A proxy of a third party: how many modules there are."""

    name = "depth"
    purpose = "number of modules"

    def score(self, trial: Trial) -> float:
        return float(len(list(trial.network.modules())))


def test_a_proxy_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROXIES._registered, "depth", Depth())  # private: forgotten after the test
    assert zero_cost(network(), images(), proxies=["depth"]) == {"depth": 7.0}
    assert list(zero_cost(network(), images())) == [*OWN, "depth"]
