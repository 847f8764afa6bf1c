"""How experts begin."""

from __future__ import annotations

import pytest
import torch

from nas_core.errors import UnknownChoiceError
from nas_core.layers import ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.mos import SPREAD, near_copies


def started(start: str, rank: int = 0, experts: int = 3) -> torch.Tensor:
    torch.manual_seed(2)
    layer = MoSLinear(40, 30, MoSConfig(kind="layer", experts=experts, start=start, rank=rank))
    assert not layer.bias.any()
    return layer.experts().detach()


def test_independent_experts_are_drawn_as_plain_layers_are() -> None:
    torch.manual_seed(2)
    plain = torch.stack([ElasticLinear(40, 30).weight.detach() for _ in range(3)])
    assert torch.equal(started("independent"), plain)


@pytest.mark.parametrize("rank", [0, 4])
def test_equal_experts_are_copies_of_one(rank: int) -> None:
    experts = started("equal", rank)
    assert torch.equal(experts, experts[:1].expand_as(experts))
    assert float(experts[0].std()) == pytest.approx((2 / 70) ** 0.5, rel=0.1)


@pytest.mark.parametrize("rank", [0, 4])
def test_near_experts_differ_a_little(rank: int) -> None:
    """Full ones by differences from their mean, those of low rank from the first."""
    experts = started("near", rank)
    differences = experts[1:] - experts[0] if rank else (experts - experts.mean(0)) * 1.5**0.5
    assert float(differences.std() / experts[0].std()) == pytest.approx(SPREAD, rel=0.2)
    assert not torch.equal(experts[1], experts[2])


@pytest.mark.parametrize("rank", [0, 4])
def test_each_start_is_repeated_by_its_seed(rank: int) -> None:
    for start in ("independent", "equal", "near"):
        assert torch.equal(started(start, rank), started(start, rank))


def test_copies_have_the_tensor_as_their_mean() -> None:
    weight, stream = torch.randn(6, 5), torch.Generator().manual_seed(1)
    torch.testing.assert_close(near_copies(weight, 4, 0.5, stream).mean(0), weight, atol=1e-6, rtol=1e-6)
    assert torch.equal(near_copies(weight, 1), weight[None])
    half = near_copies(weight.half(), 2)
    assert half.dtype == torch.float16 and not torch.equal(half[0], half[1])


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(UnknownChoiceError, match="independent"):
        MoSConfig(kind="layer", start="random")
