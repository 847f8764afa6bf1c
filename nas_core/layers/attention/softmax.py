"""Softmax attention: scaled dot products, with relative positions if a network wants them.

Shapes: B batch, T/S target and source length, H heads, D head dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers.attention.kinds import AttentionKind
from nas_core.layers.attention.relative import relative_bias

_OPERATIONS = {"cross": "cross_attention"}


class KeysValues(NamedTuple):
    """Keys and values (B, H, S, D) of all positions, as decoding keeps them."""

    keys: Tensor
    values: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """Both."""
        return self.keys, self.values

    def reorder(self, order: Tensor) -> KeysValues:
        """Rows ``order`` of the batch."""
        return KeysValues(self.keys.index_select(0, order), self.values.index_select(0, order))


@dataclass(frozen=True)
class SoftmaxAttention(AttentionKind):
    """Every position reads every key, by the softmax of scaled dot products (Vaswani et al. 2017)."""

    name: str = "softmax"
    colour = "#1f6fb4"
    letter = "S"
    takes_relative = True

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        relative: Tensor | None = None,
        dropout: float = 0.0,
        key_positions: Tensor | None = None,
    ) -> Tensor:
        """By torch's fused attention."""
        if relative is not None:
            bias = relative_bias(q, relative, k.shape[2], mask, causal)
            return F.scaled_dot_product_attention(q, k, v, bias, dropout)
        if causal and mask is not None:
            earlier = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            return F.scaled_dot_product_attention(q, k, v, mask & earlier, dropout)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal)

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """The softmax itself."""
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if relative is not None:
            scores = scores + relative_bias(q, relative, k.shape[2], None, False)
        weights: Tensor = scores.softmax(-1)
        return weights

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: KeysValues | None, relative: Tensor | None = None
    ) -> tuple[Tensor, KeysValues]:
        """Over all keys and values so far, and the new ones."""
        if past is not None:
            k, v = torch.cat([past.keys, k], dim=2), torch.cat([past.values, v], dim=2)
        bias = None
        if relative is not None:
            bias = relative_bias(q, relative, k.shape[2], None, False, k.shape[2] - 1)
        return F.scaled_dot_product_attention(q, k, v, bias), KeysValues(k, v)

    def after(self, k: Tensor, v: Tensor) -> KeysValues:
        """All of them, copied: they come as views of a tensor that also holds the queries."""
        return KeysValues(k.contiguous(), v.contiguous())

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> KeysValues:
        """Keep them as they are; each step masks them."""
        return KeysValues(k, v)

    def read(self, q: Tensor, memory: KeysValues, mask: Tensor | None, position: int) -> Tensor:
        """Attend as a whole sequence of one query does."""
        return self.attend(q, memory.keys, memory.values, mask=mask)

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """All pairs, also where later keys are masked; each query once with each vector of a distance."""
        return 2 * queries * keys * width + (queries * width * (2 * clip + 1) if clip else 0)

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """The biases of all pairs, where there are relative positions, and two tables of their distances, whose numbers
        take twice the bytes."""
        return (batch * heads + 4) * queries * keys if clip else 0

    def operation(self, place: str) -> str:
        """Named for where it stands alone: it came first."""
        return _OPERATIONS.get(place, f"{place}_self_attention")

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> KeysValues:
        """Keys and values."""
        return KeysValues(*tensors)


SOFTMAX = SoftmaxAttention()


def naive_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """Softmax attention as written in the textbook, in float32: the reference; (B, H, T, D)."""
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    attended: Tensor = scores.softmax(-1) @ v.float()
    return attended.to(q.dtype)
