"""Every kind of attention under one contract: softmax, with relative positions too, and linear."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.layers.attention import ATTENTION_KINDS, AttentionKind, LinearAttention, SoftmaxAttention
from nas_core.layers.attention.projections import SelfAttentionWeights
from tests.contracts.attention import HEADS, AttentionContract, CrossAttentionContract, Q
from tests.naive import cosformer_naive, naive_attention


class TestSoftmax(CrossAttentionContract):
    def kind(self) -> AttentionKind:
        return SoftmaxAttention()

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        return naive_attention(q, k, v, mask, causal)


class TestRelative(AttentionContract):
    relative = (2, Q // HEADS)

    def kind(self) -> AttentionKind:
        return SoftmaxAttention()

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
    def kind(self) -> AttentionKind:
        return LinearAttention(300)

    def reference(
        self, q: Tensor, k: Tensor, v: Tensor, weights: SelfAttentionWeights, mask: Tensor | None, causal: bool
    ) -> Tensor:
        keys = None if mask is None else mask[:, 0, 0]
        return cosformer_naive(q, k, v, max_length=300, causal=causal, key_mask=keys)


def test_kinds_have_different_operations() -> None:
    kinds = [kind for _, kind in ATTENTION_KINDS.items()]
    names = [kind.operation(role) for kind in kinds for role in kind.roles]
    assert len(set(names)) == len(names)
