"""Each proxy against numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from nas_core.proxies import zero_cost

X = torch.tensor([[1.0, -1.0], [1.0, 1.0]])


def linear(rows: list[list[float]], bias: bool = False) -> nn.Linear:
    layer = nn.Linear(len(rows[0]), len(rows), bias=bias)
    layer.load_state_dict({"weight": torch.tensor(rows), **({"bias": torch.zeros(len(rows))} if bias else {})})
    return layer


def score(name: str, network: nn.Module, inputs: Tensor = X, *more: Tensor, **options: object) -> float:
    return zero_cost(network, inputs, *more, proxies=[name], **options)[name]  # type: ignore[arg-type]


def total(logits: Tensor, targets: Tensor) -> Tensor:
    """A loss whose gradient for the logits is 1."""
    return logits.sum()


def test_synflow_of_a_chain_is_its_flow_once_for_each_layer() -> None:
    chain = nn.Sequential(linear([[1, -2], [3, 4]]), linear([[5, -6]]))
    flow = 5 * (1 + 2) + 6 * (3 + 4)  # absolute weights, ones in front
    assert score("synflow", chain) == pytest.approx(math.log(2 * flow))


def test_synflow_takes_norms_for_nothing_and_biases_without_their_own_share() -> None:
    norm = nn.BatchNorm1d(2)
    norm.running_mean.fill_(7), norm.weight.data.fill_(0.1)
    chain = nn.Sequential(linear([[1, -2], [3, 4]], bias=True), norm, nn.LayerNorm(2), nn.ReLU(), linear([[5, -6]]))
    assert score("synflow", chain) == pytest.approx(math.log(2 * 57))
    chain[0].bias.data.fill_(-1.0)  # adds 5 + 6 to the output, which flows through the last layer alone
    assert score("synflow", chain) == pytest.approx(math.log(57 + 68))


class Attention(nn.Module):
    """One head over tokens of one number, whose softmax is torch's function or a part of its attention."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.query, self.key, self.value, self.fused = linear([[2]]), linear([[3]]), linear([[5]]), fused

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.fused:
            return nn.functional.scaled_dot_product_attention(q, k, v)
        return (q @ k.mT).softmax(-1) @ v


@pytest.mark.parametrize("fused", [True, False])
def test_synflow_passes_values_through_attention(fused: bool) -> None:
    assert score("synflow", Attention(fused), torch.randn(2, 4, 1)) == pytest.approx(math.log(4 * 5))


def test_nothing_flows_through_zeros() -> None:
    dead, alive = (score("synflow", nn.Sequential(linear([[w, w]]), linear([[1.0]]))) for w in (0.0, 1e-6))
    assert math.isfinite(dead) and dead < alive


def test_gradient_norm_and_snip_of_one_layer() -> None:
    layer, inputs = linear([[1, -2], [3, 4]]), torch.tensor([[1.0, 0.5], [2.0, -1.5]])
    assert score("snip", layer, inputs, loss=total) == pytest.approx((1 + 3) * 3 + (2 + 4) * 1)
    assert score("grad_norm", layer, inputs, loss=total) == pytest.approx(math.sqrt(2 * (3**2 + 1**2)))


def test_the_loss_is_cross_entropy_and_norms_are_summed_over_layers() -> None:
    network = nn.Sequential(linear([[1, 0], [0, 1]]), linear([[0, 0], [0, 0]], bias=True))
    targets = torch.tensor([0, 1])
    # probabilities of one half: gradients of the logits are -+.5 / 2; biases do not count, the first layer gets none
    gradient = torch.tensor([[-0.25, 0.25], [0.25, -0.25]]).T @ X
    assert score("grad_norm", network, X, targets) == pytest.approx(float(gradient.norm()))
    assert score("snip", network, X, targets) == 0


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), nn.SiLU()])
def test_nwot_counts_units_that_react_alike(activation: nn.Module) -> None:
    network = nn.Sequential(linear([[1, 0], [0, 1]]), activation, linear([[1, 1]]))
    assert score("nwot", network) == pytest.approx(math.log(2 * 2 - 1 * 1))
    same = X[:1].repeat(2, 1)  # both units alike: eigenvalues 4 and 0
    assert score("nwot", network, same) == pytest.approx(math.log(4) + math.log(1e-5))
    twice = nn.Sequential(linear([[1, 0], [0, 1]]), activation, linear([[1, 0], [0, 0]]), activation)
    assert score("nwot", twice, X[:, [1, 0]]) > score("nwot", network, X[:, [1, 0]])


def test_jacov_of_a_linear_network_is_that_of_full_correlation() -> None:
    k = 1e-5
    lowest = -(math.log(2 + k) + 1 / (2 + k) + math.log(k) + 1 / k)
    assert score("jacov", nn.Sequential(linear([[1, -2], [3, 4]]))) == pytest.approx(lowest, rel=1e-6)
    assert score("jacov", nn.Sequential(linear([[0, 0], [0, 0]]))) == pytest.approx(lowest, rel=1e-6)


def test_jacov_of_samples_that_do_not_correlate() -> None:
    inputs = torch.tensor([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])

    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2, 2))

        def forward(self, x: Tensor) -> Tensor:
            return (x * x).sum(1, keepdim=True) * self.scale[:, 0]

    k = 1e-5
    assert score("jacov", Squares(), inputs) == pytest.approx(-2 * (math.log(1 + k) + 1 / (1 + k)))


def test_jacov_reads_embeddings_of_tokens() -> None:
    network = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(1), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    tokens = torch.randint(9, (5, 3), generator=torch.Generator().manual_seed(0))
    assert -1e6 < score("jacov", network, tokens) < -5


def test_parameters_count_once() -> None:
    shared = nn.Linear(3, 3)
    assert score("params", nn.Sequential(shared, shared, nn.BatchNorm1d(3)), torch.randn(2, 3)) == 12 + 6


def test_flops_of_convolution_norm_and_pooling() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.MaxPool2d((2, 4)),
        nn.Flatten(1),
        nn.Linear(8, 5),
    )
    macs = 27 * 4 * 64 + 4 * 64 + 4 * (4 * 16) + 8 * (4 * 2 * 1) + 8 * 5
    for batch in (2, 5):
        assert score("flops", network, torch.randn(batch, 3, 8, 8)) == 2 * macs
