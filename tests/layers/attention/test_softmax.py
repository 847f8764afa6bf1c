"""Attention against its textbook definition, and its projections against torch's module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.layers.attention import SoftmaxAttention
from nas_core.layers.attention.projections import (
    ElasticCrossAttention,
    ElasticSelfAttention,
    cross_attention,
    cross_keys_values,
    self_attention,
)
from tests.contracts.elastic import ElasticCase, ElasticContract, multihead_names, waves
from tests.naive import naive_attention

Q = 12
KIND = SoftmaxAttention()


class TestSelfAttention(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticSelfAttention(Q, Q)
        return ElasticCase(
            layer=layer,
            sizes=((Q, 3), (Q, 1), (7, 2), (5, 6)),
            select=layer.select,
            run=lambda layer, weights, x: self_attention(x, weights),
            inputs=lambda c, h: (waves(2, 5, c),),
            static=lambda c, h: ElasticSelfAttention(c, Q),
            select_static=lambda static, c, h: static.select(c, h),
            plain=lambda: nn.MultiheadAttention(Q, 3, batch_first=True),
            run_plain=lambda plain, x: plain(x, x, x)[0],
            rename=multihead_names,
            count=lambda c, h: 4 * Q * c + 3 * Q + c,
        )


class TestCrossAttention(ElasticContract):
    def case(self) -> ElasticCase:
        layer = ElasticCrossAttention(Q, Q, Q)
        return ElasticCase(
            layer=layer,
            sizes=((Q, Q, 3), (7, Q, 2), (Q, 5, 4), (3, 4, 1)),
            select=layer.select,
            run=lambda layer, weights, x, y: cross_attention(x, cross_keys_values(y, weights), weights, None, 0.0),
            inputs=lambda c, m, h: (waves(2, 5, c), waves(2, 7, m).flip(1)),
            static=lambda c, m, h: ElasticCrossAttention(c, m, Q),
            select_static=lambda static, c, m, h: static.select(c, m, h),
            plain=lambda: nn.MultiheadAttention(Q, 3, batch_first=True),
            run_plain=lambda plain, x, y: plain(x, y, y)[0],
            rename=multihead_names,
            count=lambda c, m, h: 2 * Q * c + 2 * Q * m + 3 * Q + c,
        )


def test_the_definition_itself() -> None:
    """One row by hand, so that the reference is not only compared with what it checks."""
    q, k = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[0.5, 0.0], [0.0, 1.0], [9.0, 9.0]]]])
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]])
    mask = torch.tensor([True, True, False])
    weight = torch.tensor([0.5 / 2**0.5, 2.0 / 2**0.5]).exp()
    torch.testing.assert_close(naive_attention(q, k, v, mask)[0, 0, 0], weight / weight.sum())


@pytest.mark.parametrize("clip", [None, 1])
def test_weights_are_those_that_outputs_are_made_with(clip: int | None) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    relative = None if clip is None else torch.randn(2 * clip + 1, 4)
    weights = KIND.weights(q, k, relative)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    torch.testing.assert_close(weights @ v, KIND.attend(q, k, v, relative=relative))
    if relative is None:
        torch.testing.assert_close(weights @ v, naive_attention(q, k, v, None))


def test_a_mask_holds_beside_the_order() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    mask = torch.tensor([[True, False, True, True, True], [True, True, True, False, True]])[:, None, None]
    torch.testing.assert_close(KIND.attend(q, k, v, mask=mask, causal=True), naive_attention(q, k, v, mask, True))
