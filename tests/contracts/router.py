"""What every kind of router must do: proper coefficients, nested sizes, a feed-forward layer that extracts exactly."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.layers import ROUTERS, MoSConfig, Router
from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from tests.contracts.elastic import ElasticCase, ElasticContract, State

FEATURES = 10
ENCODING = torch.linspace(0.2, 1.0, FEATURES)
ROWS = 40
"""Of the largest layer; more than one block of a router that mixes several rows alike."""


class RouterContract(ElasticContract):
    """Derive from it and name the ``kind``. The contract of elastic layers holds with its mixtures."""

    kind: str

    def config(self, experts: int = 3) -> MoSConfig:
        return MoSConfig(kind=self.kind, router_hidden=8, experts=experts)

    def router(self, rows: int = ROWS, experts: int = 3) -> Router:
        torch.manual_seed(0)
        return ROUTERS.get(self.kind)(FEATURES, self.config(experts), rows)

    def case(self) -> ElasticCase:
        layer = ElasticFeedForward(6, ROWS, FEATURES, self.config())
        return ElasticCase(
            layer=layer,
            sizes=((6, ROWS), (6, 4), (3, 33), (5, 2)),
            select=lambda c, f: layer.select(c, f, ENCODING),
            run=lambda layer, weights, x: feed_forward(x, weights),
            inputs=lambda c, f: (torch.linspace(-1, 2, 6 * c).view(2, 3, c).sin(),),
            static=lambda c, f: ElasticFeedForward(c, f, FEATURES, MoSConfig()),
            select_static=lambda static, c, f: static.select(c, f, None),
            plain=lambda: nn.Sequential(nn.Linear(6, ROWS), nn.ReLU(), nn.Linear(ROWS, 6)),
            run_plain=lambda plain, x: plain(x),
            rename=_renamed,
            count=lambda c, f: c * f + f + f * c + c,
            placed=None,
        )

    @pytest.mark.parametrize("rows", [1, 2, 17, ROWS])
    def test_coefficients_are_positive_and_sum_to_one(self, rows: int) -> None:
        mixing = self.router()(ENCODING, rows)
        assert mixing.shape in ((3,), (rows, 3))
        assert (mixing > 0).all()
        torch.testing.assert_close(mixing.sum(-1), torch.ones(mixing.shape[:-1]))

    def test_a_smaller_layer_has_the_first_coefficients_of_a_larger(self) -> None:
        router = self.router()
        full = router(ENCODING, ROWS)
        for rows in (1, 5, 20, 39):
            torch.testing.assert_close(router(ENCODING, rows), full if full.dim() == 1 else full[:rows])

    def test_architectures_are_told_apart_and_every_parameter_learns(self) -> None:
        router = self.router()
        first, other = router(ENCODING, ROWS), router(1 - ENCODING, ROWS)
        assert not torch.allclose(first, other)
        first[..., 0].sum().backward()
        for name, parameter in router.named_parameters():
            assert parameter.grad is not None and parameter.grad.any(), name


def _renamed(state: State) -> State:
    return {name.replace("fc1", "0").replace("fc2", "2"): tensor for name, tensor in state.items()}
