"""Decoding: a state of fixed size instead of all past keys and values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.checks import check
from nas_core.layers.attention.cosformer.normalize import EPS, NORMALIZE, finished, working_dtype
from nas_core.layers.attention.cosformer.positions import turns
from nas_core.layers.modes import without_autocast


class CosformerState:
    """Sums over the keys and values read so far: 2 D (Dv + 1) numbers per head, however many positions.

    For self-attention :meth:`step` adds a position and reads; for attention to another sequence, :meth:`of` sums it
    once and :meth:`read` reads it at a position. The state is float32 (float64 for float64 inputs) even where the
    model computes in halves: sums of thousands of terms lose their digits there.

    Args:
        sums: ``(B, H, 2D, Dv)`` of features times values.
        weights: ``(B, H, 2D)`` of features.
        length: positions of self-attention so far.
        max_length: of the attention's factors, as in :func:`cosformer_attention`.
    """

    def __init__(
        self,
        sums: Tensor,
        weights: Tensor,
        max_length: int,
        length: int = 0,
        normalize: str = "denominator",
        eps: float = EPS,
    ) -> None:
        if sums.dtype not in (torch.float32, torch.float64) or weights.dtype != sums.dtype:
            raise ConfigError(f"a decoding state in {sums.dtype} loses what it adds up; expected float32 or float64")
        if sums.ndim != 4 or weights.shape != sums.shape[:3] or sums.shape[2] % 2:
            raise ConfigError(
                f"sums are {tuple(sums.shape)}, weights {tuple(weights.shape)}; expected (B, H, 2D, Dv) and (B, H, 2D)"
            )
        if normalize not in NORMALIZE:
            raise unknown_choice("normalisation of linear attention", normalize, NORMALIZE)
        if max_length < 1:
            raise ConfigError(f"max_length is {max_length}; expected at least 1")
        self.sums, self.weights, self.length = sums, weights, length
        self.max_length, self.normalize, self.eps = max_length, normalize, eps

    @classmethod
    def empty(cls, like: Tensor, value_dim: int, max_length: int, normalize: str = "denominator") -> CosformerState:
        """Before the first position, for keys like ``(B, H, 1, D)``."""
        if like.ndim != 4:
            raise ConfigError(f"keys are {tuple(like.shape)}; expected (B, H, 1, D)")
        batch, heads, _, dim = like.shape
        sums = torch.zeros(batch, heads, 2 * dim, value_dim, dtype=working_dtype(like), device=like.device)
        return cls(sums, sums.new_zeros(batch, heads, 2 * dim), max_length, 0, normalize)

    @classmethod
    def of(
        cls,
        k: Tensor,
        v: Tensor,
        max_length: int,
        key_mask: Tensor | None = None,
        key_positions: Tensor | None = None,
        normalize: str = "denominator",
        bounded: bool = False,
    ) -> CosformerState:
        """After keys ``(B, H, S, D)`` and values ``(B, H, S, Dv)``; other arguments as in
        :func:`cosformer_attention`."""
        check(k[:, :, :1], k, v, max_length, False, key_mask, normalize, (None, key_positions), bounded)
        kind = working_dtype(k)
        at = turns(
            torch.arange(k.shape[2], device=k.device) if key_positions is None else key_positions, max_length, kind
        )
        keys = torch.relu(k.to(kind))
        if key_mask is not None:
            keys = keys * key_mask[:, None, :, None]
        features = torch.cat([keys * at.sin, keys * at.cos], -1)
        with without_autocast(k):
            sums = features.transpose(2, 3) @ v.to(kind)
        return cls(sums, features.sum(2), max_length, k.shape[2], normalize)

    def step(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Add the next position, keys ``(B, H, 1, D)`` and values ``(B, H, 1, Dv)``, and read it all with its query
        ``(B, H, 1, D)``: ``(B, H, 1, Dv)``.

        Raises:
            ConfigError: the sequence would be longer than ``max_length``, or a shape is another one.
        """
        batch, heads, width, values = self.sums.shape
        for x, dim in ((q, width // 2), (k, width // 2), (v, values)):
            self._check(x, (batch, heads, 1, dim))
        self._check_position(self.length)
        features = self._features(k, self.length)
        self.sums = self.sums + features.transpose(2, 3) * v.to(self.sums.dtype)
        self.weights = self.weights + features.squeeze(2)
        self.length += 1
        return self.read(q, self.length - 1)

    def read(self, q: Tensor, position: int) -> Tensor:
        """Attention of queries ``(B, H, 1, D)`` at that position: ``(B, H, 1, Dv)``.

        Raises:
            ConfigError: the position lies beyond ``max_length``, or the shape is another one.
        """
        batch, heads, width, _ = self.sums.shape
        self._check(q, (batch, heads, 1, width // 2))
        self._check_position(position)
        features = self._features(q, position)
        with without_autocast(q):
            sums = features @ self.sums
            weights = features @ self.weights.unsqueeze(-1) if self.normalize == "denominator" else None
        return finished(sums, weights, self.normalize, self.eps).to(q.dtype)

    def _check(self, x: Tensor, expected: tuple[int, ...]) -> None:
        if x.shape != expected:
            raise ConfigError(f"a decoding step got {tuple(x.shape)}; this state reads {expected}, (B, H, 1, D)")

    def _check_position(self, position: int) -> None:
        if not 0 <= position < self.max_length:
            raise ConfigError(
                f"decoding goes beyond max_length {self.max_length} of this linear attention (position {position});"
                " stop there, or build the model with a larger max_length"
            )

    def tensors(self) -> tuple[Tensor, ...]:
        """Sums and weights."""
        return self.sums, self.weights

    def reorder(self, order: Tensor | Sequence[int]) -> CosformerState:
        """Rows ``order`` of the batch, for beam search; a new state."""
        index = torch.as_tensor(order, device=self.sums.device)
        picked = self.sums.index_select(0, index), self.weights.index_select(0, index)
        return CosformerState(*picked, self.max_length, self.length, self.normalize, self.eps)

    def _features(self, x: Tensor, position: int) -> Tensor:
        angle = position * (math.pi / 2 / self.max_length)  # on the host: no copy to the device in each step
        positive = torch.relu(x.to(self.sums.dtype))
        return torch.cat([positive * math.sin(angle), positive * math.cos(angle)], -1)
