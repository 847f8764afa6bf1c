"""Softmax, softmax with relative positions, and linear attention under one contract."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.errors import UnknownChoiceError
from nas_core.layers.attention.cosformer import cosformer_naive
from nas_core.layers.attention.kinds import one_or_several, select_kind
from nas_core.layers.attention.softmax import (
    ElasticCrossAttention,
    ElasticSelfAttention,
    LinearAttention,
    SelfAttentionWeights,
    naive_attention,
)
from tests.contracts.attention import HEADS, AttentionContract, C, CrossAttentionContract, Q


class TestSoftmax(CrossAttentionContract):
    def layer(self) -> ElasticSelfAttention:
        return ElasticSelfAttention(C, Q)

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        return naive_attention(q, k, v, mask, causal)

    def cross(self) -> ElasticCrossAttention:
        return ElasticCrossAttention(C, 7, Q)


class TestRelative(AttentionContract):
    def layer(self) -> ElasticSelfAttention:
        return ElasticSelfAttention(C, Q, relative=(2, Q // HEADS))

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """Shaw et al. 2018, equation 5, row by row: e_ij = q_i (k_j + a_ij)ᵀ / sqrt(D)."""
        assert weights.relative is not None
        rows = []
        for i in range(q.shape[2]):
            clipped = [max(-2, min(2, j - i)) + 2 for j in range(k.shape[2])]
            keys = k + weights.relative[clipped]
            scores = (q[:, :, i : i + 1] @ keys.transpose(-1, -2)) * q.shape[-1] ** -0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            if causal:
                scores[..., i + 1 :] = float("-inf")
            rows.append(scores.softmax(-1) @ v)
        return torch.cat(rows, 2)


class TestLinear(CrossAttentionContract):
    linear = LinearAttention(max_length=300)

    def layer(self) -> ElasticSelfAttention:
        return ElasticSelfAttention(C, Q, self.linear)

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        keys = None if mask is None else mask[:, 0, 0]
        config = self.linear
        return cosformer_naive(
            q, k, v, max_length=config.max_length, causal=causal, key_mask=keys, normalize=config.normalize
        )

    def cross(self) -> ElasticCrossAttention:
        return ElasticCrossAttention(C, 7, Q, self.linear)


class TestLinearRMS(TestLinear):
    linear = LinearAttention(max_length=300, normalize="rms")


class TestLinearLayerNorm(TestLinear):
    linear = LinearAttention(max_length=300, normalize="layer")


def test_each_kind_has_weights_of_its_own() -> None:
    def make(kind: str) -> ElasticSelfAttention:
        return ElasticSelfAttention(C, Q, LinearAttention() if kind == "linear" else None)

    several = one_or_several(("softmax", "linear"), make)
    softmax, linear = (select_kind(several, kind, C, HEADS) for kind in ("softmax", "linear"))
    assert softmax.linear is None and linear.linear == LinearAttention()
    assert not torch.equal(softmax.in_proj.weight, linear.in_proj.weight)
    alone = one_or_several(("linear",), make)
    assert set(alone.state_dict()) == {name.removeprefix("linear.") for name in several["linear"].state_dict()}  # type: ignore[index]
    with pytest.raises(UnknownChoiceError, match="cosine"):
        one_or_several(("softmax", "cosine"), make)
