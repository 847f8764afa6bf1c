"""Linear attention (cosFormer) as an attention mechanism of elastic models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.cosformer.common import EPS, CosTable, check, cos_table, working_dtype
from nas_core.layers.attention.cosformer.forms import cosformer_attention
from nas_core.layers.attention.cosformer.streaming import CAUSAL_BLOCK, NONCAUSAL_BLOCK
from nas_core.layers.attention.kinds import AttentionKind, StateValue
from nas_core.layers.torch_modes import without_autocast


class CosformerState:
    """Decoding state of linear attention: sums over all past keys and values. Its size is constant.

    Self-attention calls :meth:`step` at each position. Cross-attention calls :meth:`of`, then :meth:`read`.

    Args:
        sums: ``(B, H, 2D, Dv)``, sums of key features times values.
        weights: ``(B, H, 2D)``, sums of key features.
        max_length: M of :func:`cosformer_attention`.
        length: number of past positions of self-attention.
        table: sine and cosine of the next position, in exported decoding steps.
    """

    def __init__(
        self,
        sums: Tensor,
        weights: Tensor,
        max_length: int,
        length: int = 0,
        table: CosTable | None = None,
    ) -> None:
        self.sums, self.weights, self.max_length, self.length, self.table = sums, weights, max_length, length, table

    @classmethod
    def empty(cls, like: Tensor, value_dim: int, max_length: int) -> CosformerState:
        """Return the state before the first position, for keys like ``(B, H, 1, D)``."""
        batch, heads, _, dim = like.shape
        sums = torch.zeros(batch, heads, 2 * dim, value_dim, dtype=working_dtype(like), device=like.device)
        return cls(sums, sums.new_zeros(batch, heads, 2 * dim), max_length)

    @classmethod
    def of(
        cls,
        k: Tensor,
        v: Tensor,
        max_length: int,
        key_mask: Tensor | None = None,
        key_positions: Tensor | None = None,
    ) -> CosformerState:
        """Return the state after keys ``(B, H, S, D)`` and values ``(B, H, S, Dv)``.

        For other arguments, see :func:`cosformer_attention`.
        """
        check(k[:, :, :1], k, v, max_length, False, key_mask, (None, key_positions))
        dtype = working_dtype(k)
        positions = torch.arange(k.shape[2], device=k.device) if key_positions is None else key_positions
        table = cos_table(positions, max_length, dtype)
        keys = torch.relu(k.to(dtype))
        if key_mask is not None:
            keys = keys * key_mask[:, None, :, None]
        features = torch.cat([keys * table.sin, keys * table.cos], -1)
        with without_autocast(k):
            sums = features.transpose(2, 3) @ v.to(dtype)
        return cls(sums, features.sum(2), max_length, k.shape[2])

    def step(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Add keys and values of one position ``(B, H, 1, D)``, and return the attention of its query."""
        self._check_position(self.length)
        features = self._features(k, self.length)
        self.sums = self.sums + features.transpose(2, 3) * v.to(self.sums.dtype)
        self.weights = self.weights + features.squeeze(2)
        self.length += 1
        return self.read(q, self.length - 1)

    def read(self, q: Tensor, position: int) -> Tensor:
        """Return the attention ``(B, H, 1, Dv)`` of queries ``(B, H, 1, D)`` at a position."""
        self._check_position(position)
        features = self._features(q, position)
        with without_autocast(q):
            sums, weights = features @ self.sums, features @ self.weights.unsqueeze(-1)
        return (sums / weights.clamp(min=EPS)).to(q.dtype)

    def _check_position(self, position: int) -> None:
        if not 0 <= position < self.max_length:
            raise ConfigError(
                f"position {position} in decoding is outside max_length {self.max_length} of linear attention;"
                " stop earlier, or build the model with a larger max_length"
            )

    def tensors(self) -> tuple[Tensor, ...]:
        return self.sums, self.weights

    def reorder(self, order: Tensor | Sequence[int]) -> CosformerState:
        index = torch.as_tensor(order, device=self.sums.device)
        tensors = self.sums.index_select(0, index), self.weights.index_select(0, index)
        return CosformerState(*tensors, self.max_length, self.length)

    def _features(self, x: Tensor, position: int) -> Tensor:
        angle = position * (math.pi / 2 / self.max_length)  # on the host: no copy to the device in each step
        sin, cos = self.table or (math.sin(angle), math.cos(angle))
        positive = torch.relu(x.to(self.sums.dtype))
        return torch.cat([positive * sin, positive * cos], -1)


@dataclass(frozen=True)
class LinearAttention(AttentionKind):
    """Linear attention, see :func:`cosformer_attention`."""

    max_length: int | None = 1024
    """M of the cosine weights, and longest sequence. None uses each sequence's number of tokens (non-causal only)."""
    name: str = "linear"
    reads_positive_parts = True
    is_bounded = True
    reads_positions = True
    masks_memory = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ConfigError(f"max_length of linear attention is {self.max_length}; expected at least 1")

    def scaled(self, max_length: int | None) -> LinearAttention:
        return replace(self, max_length=max_length)

    @property
    def _required_length(self) -> int:
        if self.max_length is None:
            raise ConfigError(
                "linear attention has max_length None, but decoding needs a number; build the model with max_length,"
                " the longest sequence in tokens"
            )
        return self.max_length

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        key_positions: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        return cosformer_attention(
            q, k, v, max_length=self.max_length, causal=causal, key_mask=None if mask is None else mask[:, 0, 0],
            key_positions=key_positions,
        )  # fmt: skip

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        return cosformer_attention(q, k, v, max_length=self.max_length, form="chunked")

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: CosformerState | None, relative: Tensor | None = None
    ) -> tuple[Tensor, CosformerState]:
        state = past or CosformerState.empty(k, v.shape[-1], self._required_length)
        return state.step(q, k, v), state

    def state_after(self, k: Tensor, v: Tensor) -> CosformerState:
        return CosformerState.of(k, v, self._required_length)

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> CosformerState:
        tokens = None if mask is None else mask[:, 0, 0]
        return CosformerState.of(k, v, self._required_length, tokens, positions)

    def read(self, q: Tensor, memory: CosformerState, mask: Tensor | None, position: int) -> Tensor:
        return memory.read(q, position)

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        return (queries + keys) * 2 * (width // heads) * width

    def temporary_numel(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        # Non-causal: ReLU, features and outputs of a block of queries, the previous block, and features of keys.
        # Causal: a block with its pairs, then the features of all keys.
        sums, block = 2 * width * width // heads, min(keys, CAUSAL_BLOCK)
        if causal:
            return batch * (sums + max(4 * keys * width, block * (5 * width + heads * block)))
        first = min(queries, NONCAUSAL_BLOCK)
        rows = 4 * first + min(queries - first, first) + 2 * ((keys - 1) % NONCAUSAL_BLOCK + 1)
        return batch * (sums + max(queries, rows - queries) * width)

    def extra_memory(self, keys: int, width: int) -> tuple[int, int]:
        return 2 * keys * width, 5 * keys * width

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        sums = StateValue("sums", ("batch", heads, 2 * dim, dim))
        return sums, StateValue("weights", ("batch", heads, 2 * dim), positive=True)

    def step_table(self, rows: int) -> Tensor:
        table = cos_table(torch.arange(rows), self._required_length, torch.float32)
        return torch.cat([table.sin, table.cos], 1)

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> CosformerState:
        assert row is not None
        sums, weights = tensors
        return CosformerState(sums, weights, self._required_length, 0, CosTable(*row.chunk(2)))


LINEAR = LinearAttention()
