"""Local attention: softmax over a sliding window (Beltagy et al. 2020, "Longformer", section 3.1, no global tokens).

Shapes: B batch, T length, H heads, D head dim, W window, N blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import AttentionKind, StateValue
from nas_core.layers.torch_modes import is_traced


class Ring(NamedTuple):
    """Keys and values ``(B, H, W, D)`` of the last W positions. Position ``p`` has index ``p % W``."""

    keys: Tensor
    values: Tensor
    length: int | Tensor
    """Number of past positions. A tensor in exported decoding steps."""

    def tensors(self) -> tuple[Tensor, ...]:
        return self.keys, self.values

    def reorder(self, order: Tensor) -> Ring:
        return Ring(self.keys.index_select(0, order), self.values.index_select(0, order), self.length)


@dataclass(frozen=True)
class LocalAttention(AttentionKind):
    """Attention to the last ``window`` positions in a decoder, otherwise to ``window // 2`` positions on either side.

    Image patches are ordered by rows. Cross-attention is not supported.
    """

    window: int = 16
    """Number of positions W, at least 2."""
    name: str = "local"
    places = ("encoder", "decoder", "image")

    def __post_init__(self) -> None:
        if self.window < 2:
            raise ConfigError(f"window of local attention is {self.window}; expected at least 2 positions")

    def reach(self, causal: bool) -> int:
        return self.window - 1 if causal else self.window // 2

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        **options: Any,
    ) -> Tensor:
        if is_traced():
            return self._by_positions(q, k, v, mask, causal)
        if q.shape[2] ** 2 <= self._pairs(q.shape[2], causal):
            return _mixed(q, k, v, _near(q.shape[2], self.reach(causal), causal, mask, q.device), dropout)
        return self._by_blocks(q, k, v, mask, causal, dropout)

    def _by_blocks(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout: float) -> Tensor:
        batch, heads, length, dim = q.shape
        reach, neighbours = self.reach(causal), 2 if causal else 3
        blocks = (length + reach - 1) // reach
        padding = blocks * reach - length

        def windows(x: Tensor) -> Tensor:
            # (B, H, N, keys of a block, D)
            x = F.pad(x, (0, 0, reach, padding + (neighbours - 2) * reach))
            x = x.view(*x.shape[:2], blocks + neighbours - 1, reach, x.shape[-1])
            return torch.cat([x[:, :, first : first + blocks] for first in range(neighbours)], 3)

        queries = F.pad(q, (0, 0, 0, padding)).view(batch, heads, blocks, reach, dim)
        tokens = torch.ones(1, 1, 1, length, dtype=torch.bool, device=q.device) if mask is None else mask
        readable = windows(tokens.transpose(2, 3).to(q.dtype)).transpose(-1, -2) > 0
        steps = torch.arange(neighbours * reach, device=q.device)
        apart = steps - reach - steps[:reach, None]
        near = (apart >= -reach) & (apart <= (0 if causal else reach))
        # Each position attends to itself, so that outputs at padding are finite.
        mixed = _mixed(queries, windows(k), windows(v), (near & readable) | (apart == 0), dropout)
        return mixed.flatten(2, 3)[:, :, :length]

    def _by_positions(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        # For exporters, which cannot prove a number of blocks for every length.
        steps, reach = torch.arange(q.shape[2], device=q.device), self.reach(causal)
        apart = torch.arange(-reach, 1 if causal else reach + 1, device=q.device)
        positions = steps[:, None] + apart
        inside = (positions >= 0) & (positions < q.shape[2])
        picked = positions.clamp(min=0).minimum(steps[-1]).flatten()

        def windows(x: Tensor) -> Tensor:
            # (B, H, T, keys of a query, D)
            return x.index_select(2, picked).view(*x.shape[:3], len(apart), x.shape[3])

        if mask is not None:
            inside = (inside & windows(mask.transpose(2, 3))[..., 0]) | (apart == 0)
        return _mixed(q[:, :, :, None], windows(k), windows(v), inside[..., None, :])[:, :, :, 0]

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        return _weighed(q, k, _near(q.shape[2], self.reach(False), False, None, q.device))

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: Ring | None, relative: Tensor | None = None
    ) -> tuple[Tensor, Ring]:
        shape = (*k.shape[:2], self.window, k.shape[3])
        keys, values, length = past or Ring(k.new_zeros(shape), v.new_zeros(shape), 0)
        places = torch.arange(self.window, device=k.device)
        current = (places == length % self.window)[:, None]
        keys, values = torch.where(current, k, keys), torch.where(current, v, values)
        return _mixed(q, keys, values, places <= length), Ring(keys, values, length + 1)

    def after(self, k: Tensor, v: Tensor) -> Ring:
        places, last = torch.arange(self.window, device=k.device), k.shape[2] - 1
        positions = last - torch.remainder(last - places, self.window)
        picked, filled = positions.clamp(min=0), (positions >= 0)[:, None]
        keys, values = (torch.where(filled, x.index_select(2, picked), x.new_zeros(())) for x in (k, v))
        return Ring(keys, values, k.shape[2])

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        return 2 * min(queries * keys, self._pairs(queries, causal)) * width

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        pairs = self._pairs(queries, causal)
        if queries * keys <= pairs:
            return 2 * batch * heads * queries * keys
        reach = self.reach(causal)
        return 2 * batch * (heads * pairs + pairs // reach * width)

    def _pairs(self, length: int, causal: bool) -> int:
        reach = self.reach(causal)
        return -(-length // reach) * reach * (2 if causal else 3) * reach

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        shape = ("batch", heads, self.window, dim)
        return StateValue("ring_key", shape), StateValue("ring_value", shape)

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> Ring:
        return Ring(tensors[0], tensors[1], position)


LOCAL = LocalAttention()


def _near(length: int, reach: int, causal: bool, mask: Tensor | None, device: torch.device) -> Tensor:
    """Return the mask of visible keys: ``(T, T)``, or ``(B, 1, T, T)`` if there is padding."""
    steps = torch.arange(length, device=device)
    apart = steps - steps[:, None]
    near = (apart >= -reach) & (apart <= (0 if causal else reach))
    return near if mask is None else (near & mask) | (apart == 0)


def _weighed(q: Tensor, k: Tensor, readable: Tensor) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # float16 overflows if scaled after
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(~readable, float("-inf"))
    weights: Tensor = scores.softmax(-1)
    return weights.to(q.dtype)


def _mixed(q: Tensor, k: Tensor, v: Tensor, readable: Tensor, dropout: float = 0.0) -> Tensor:
    weights = _weighed(q, k, readable)
    return (F.dropout(weights, dropout) if dropout else weights) @ v


def naive_local(q: Tensor, k: Tensor, v: Tensor, window: int, mask: Tensor | None, causal: bool = False) -> Tensor:
    outputs = []
    for position in range(q.shape[2]):
        first = max(0, position - (window - 1 if causal else window // 2))
        last = position + 1 if causal else position + window // 2 + 1
        keys, values = k[:, :, first:last].float(), v[:, :, first:last].float()
        scores = q[:, :, position : position + 1].float() @ keys.mT * q.shape[-1] ** -0.5
        if mask is not None:
            readable = mask[..., first:last].clone()
            readable[..., position - first] = True
            scores = scores.masked_fill(~readable, float("-inf"))
        outputs.append(scores.softmax(-1) @ values)
    return torch.cat(outputs, 2).to(q.dtype)
