"""How alike experts are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.layers import ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.mos import check_apart, expert_layers, experts_alike, naive_alike, rows_alike


@pytest.mark.parametrize("experts", [2, 3, 5])
def test_equals_its_definition(experts: int) -> None:
    torch.manual_seed(0)
    ours = torch.randn(experts, 6, 9).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    got, expected = rows_alike(ours), naive_alike(theirs)
    torch.testing.assert_close(got, expected)
    got.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-5)
    assert ours.grad is not None and ours.grad.any()


def test_from_orthogonal_to_equal() -> None:
    one = torch.eye(4)
    assert float(rows_alike(torch.stack([one, one.flip(0)]))) == 0
    assert float(rows_alike(torch.stack([one, one * -3]))) == pytest.approx(1)
    zero = torch.stack([one, torch.zeros(4, 4)]).requires_grad_()
    alike = rows_alike(zero)
    alike.backward()
    assert float(alike.detach()) == 0 and zero.grad is not None and zero.grad.isfinite().all()


def test_halves_are_computed_in_float32() -> None:
    torch.manual_seed(0)
    experts = (torch.randn(2, 5, 300) * 100).half().requires_grad_()
    alike = rows_alike(experts)
    alike.backward()
    assert alike.dtype == torch.float32
    torch.testing.assert_close(alike, naive_alike(experts.detach()))
    assert experts.grad is not None and experts.grad.dtype == torch.float16


@pytest.mark.parametrize("rank", [0, 2])
def test_a_network_has_the_mean_of_its_layers(rank: int) -> None:
    torch.manual_seed(0)
    config = MoSConfig(kind="layer", experts=3, rank=rank, start="near")
    network = nn.Sequential(ElasticLinear(6, 6), MoSLinear(6, 8, config), MoSLinear(8, 6, config))
    expected = [rows_alike(layer.experts()) for layer in expert_layers(network)]
    assert len(expected) == 2
    torch.testing.assert_close(experts_alike(network), torch.stack(expected).mean())


def test_descent_drives_experts_apart() -> None:
    torch.manual_seed(0)
    layer = MoSLinear(12, 8, MoSConfig(kind="neuron", start="near"))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    before = float(experts_alike(layer).detach())
    for _ in range(30):
        optimizer.zero_grad()
        experts_alike(layer).backward()
        optimizer.step()
    assert before > 0.99 and float(experts_alike(layer).detach()) < 0.1


def test_networks_and_weights_that_cannot_be_kept_apart() -> None:
    plain = nn.Sequential(ElasticLinear(3, 3), MoSLinear(3, 3, MoSConfig(kind="layer", experts=1)))
    check_apart(0.0, plain)
    with pytest.raises(ConfigError, match="no layers of several experts"):
        check_apart(0.1, plain)
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="expected a weight above 0"):
            check_apart(wrong, plain)
