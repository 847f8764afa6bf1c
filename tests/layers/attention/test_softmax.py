"""Attention against its textbook definition, and its projections against torch's module."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers.attention import (
    ElasticCrossAttention,
    ElasticSelfAttention,
    LinearAttention,
    SelfAttentionWeights,
    naive_attention,
)
from nas_core.layers.attention.projections import attend, cross_attention, cross_keys_values, self_attention
from nas_core.layers.attention.projections import split_heads
from nas_core.layers.weights import Affine
from tests.contracts.elastic import ElasticCase, ElasticContract, multihead_names, waves

Q = 12
IDENTITY = Affine(torch.eye(Q), torch.zeros(Q))


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


def key_mask(batch: int, length: int) -> Tensor:
    """Sentences that are padded on the right, on the left, and not at all."""
    mask = torch.ones(batch, 1, 1, length, dtype=torch.bool)
    mask[0, ..., -(length // 2) :] = False
    if length > 1:
        mask[1, ..., :1] = False
    return mask


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("heads", [1, 3, 4])
@pytest.mark.parametrize(
    ("target", "source", "masked", "causal"),
    [(1, 1, False, False), (7, 7, False, True), (5, 13, True, False), (9, 3, True, False), (1, 5, True, False)],
)
def test_equals_the_definition(
    target: int, source: int, masked: bool, causal: bool, heads: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    shapes = [(3, heads, length, Q // heads) for length in (target, source, source)]
    ours = [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]
    theirs = [tensor.detach().float().requires_grad_() for tensor in ours]
    mask = key_mask(3, source) if masked else None
    identity = Affine(*(tensor.to(dtype) for tensor in IDENTITY))
    output = attend(ours[0], ours[1], ours[2], SelfAttentionWeights(identity, identity, heads), mask, 0.0, causal)
    expected = naive_attention(theirs[0], theirs[1], theirs[2], mask, causal).transpose(1, 2).flatten(2)
    assert output.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float else 5e-2
    torch.testing.assert_close(output.float(), expected, atol=tolerance, rtol=tolerance)
    weighting = torch.randn(expected.shape)
    (output.float() * weighting).sum().backward()
    (expected * weighting).sum().backward()
    for name, got, want in zip("qkv", ours, theirs, strict=True):
        assert got.grad is not None
        torch.testing.assert_close(
            got.grad.float(), want.grad, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"d{n}: {m}"
        )


def test_the_definition_itself() -> None:
    """One row by hand, so that the reference is not only compared with what it checks."""
    q, k = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[0.5, 0.0], [0.0, 1.0], [9.0, 9.0]]]])
    v = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]])
    mask = torch.tensor([True, True, False])
    weight = torch.tensor([0.5 / 2**0.5, 2.0 / 2**0.5]).exp()
    torch.testing.assert_close(naive_attention(q, k, v, mask)[0, 0, 0], weight / weight.sum())


def test_causal_attention_reads_nothing_later() -> None:
    torch.manual_seed(0)
    layer = ElasticSelfAttention(Q, Q)
    weights = layer.select(Q, 3)
    x = torch.randn(2, 7, Q)
    changed = x.clone()
    changed[:, 4:] += 1.0
    before, after = self_attention(x, weights, causal=True), self_attention(changed, weights, causal=True)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_masked_keys_have_no_influence_and_no_gradient() -> None:
    torch.manual_seed(0)
    layer = ElasticCrossAttention(Q, 7, Q)
    weights = layer.select(Q, 7, 2)
    x, memory = torch.randn(3, 4, Q), torch.randn(3, 5, 7, requires_grad=True)
    mask = key_mask(3, 5)
    cross_attention(x, cross_keys_values(memory, weights), weights, mask, 0.0).square().sum().backward()
    assert memory.grad is not None
    assert torch.equal(memory.grad.abs().sum(-1) > 0, mask[:, 0, 0])


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_heads_split_the_same_channels(heads: int) -> None:
    x = torch.arange(2 * 3 * 2 * 8.0).view(2, 3, 16)
    first, second = split_heads(x, 2, heads)
    assert first.shape == (2, heads, 3, 8 // heads)
    assert torch.equal(first.transpose(1, 2).flatten(2), x[..., :8])
    assert torch.equal(second.transpose(1, 2).flatten(2), x[..., 8:])


def test_projections_start_like_hat() -> None:
    """A fused (3Q, C) matrix of which each third has the bound of a (Q, C) matrix divided by the square root of 2."""
    torch.manual_seed(0)
    own, cross = ElasticSelfAttention(60, 40), ElasticCrossAttention(60, 50, 40)
    parts = [*own.in_proj.weight.chunk(3), cross.q_proj.weight, *cross.kv_proj.weight.chunk(2)]
    for part in parts:
        bound = (6 / sum(part.shape)) ** 0.5 * 2**-0.5
        assert 0.98 * bound < float(part.detach().abs().max()) <= bound
    assert not torch.allclose(parts[0], parts[1])
    for out in (own.out_proj.weight, cross.out_proj.weight):
        bound = (6 / 100) ** 0.5
        assert 0.98 * bound < float(out.detach().abs().max()) <= bound


@pytest.mark.parametrize("linear", [None, LinearAttention(16)])
@pytest.mark.parametrize(
    "mask",
    [torch.ones(2, 1, 5, 5) > 0, torch.ones(2, 1, 1, 5), torch.ones(2, 5) > 0, torch.ones(2, 1, 1, 4) > 0],
    ids=["a row for each query", "numbers", "two dimensions", "a key short"],
)
def test_masks_of_other_shapes_are_told(linear: LinearAttention | None, mask: torch.Tensor) -> None:
    attention = ElasticSelfAttention(8, 8, linear)
    with pytest.raises(ConfigError, match=r"expected bool \(2, 1, 1, 5\)"):
        self_attention(torch.randn(2, 5, 8), attention.select(8, 2), mask)
