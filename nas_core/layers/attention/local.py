"""Local attention: the softmax over a window that slides along the sequence, in time linear in its length.

Beltagy et al. 2020, "Longformer: The Long-Document Transformer", section 3.1, without its global tokens. Keys and
queries are cut into blocks as long as the reach of the window, so that a query's window lies in its own block and the
one beside it.

Shapes: B batch, T length, H heads, D head dim, W window, N blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import AttentionKind, AttentionState, StateValue, exporting

WINDOW = 16
"""Positions of a window unless a kind says otherwise."""


class Ring(NamedTuple):
    """Keys and values (B, H, W, D) of the last W positions: position ``p`` stands in place ``p % W``."""

    keys: Tensor
    values: Tensor
    length: int | Tensor
    """Positions so far; a tensor in exported steps."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Keys and values."""
        return self.keys, self.values

    def reorder(self, order: Tensor) -> Ring:
        """Rows ``order`` of the batch."""
        return Ring(self.keys.index_select(0, order), self.values.index_select(0, order), self.length)


@dataclass(frozen=True)
class LocalAttention(AttentionKind):
    """Each position reads those near it: the last ``window`` in a decoder, else ``window // 2`` on either side.

    A position always reads itself, so that padding, whose outputs nobody reads, stays finite. Images are read row by
    row, a class token first. Attention to another sequence is not offered: no position of it is near.

    Raises:
        ConfigError: a window of less than 2 positions.
    """

    window: int = WINDOW
    """W; another one is another kind, registered under a name of its own."""
    name: str = "local"
    places = ("encoder", "decoder", "image")
    colour = "#8a5fb0"
    letter = "W"

    def __post_init__(self) -> None:
        if self.window < 2:
            raise ConfigError(f"the window of local attention is {self.window}; expected at least 2 positions")

    def reach(self, causal: bool) -> int:
        """Positions to the farthest one that is read."""
        return self.window - 1 if causal else self.window // 2

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
        """Block by block, all pairs of a sequence so short that this is less, or position by position for exporters."""
        if q.shape != k.shape:
            raise ConfigError(
                f"local attention got queries {tuple(q.shape)}, keys {tuple(k.shape)}; expected those of one sequence"
            )
        if exporting():
            return self._by_positions(q, k, v, mask, causal)
        if q.shape[2] ** 2 <= self._pairs(q.shape[2], causal):
            return _mixed(q, k, v, _near(q.shape[2], self.reach(causal), causal, mask, q.device), dropout)
        return self._by_blocks(q, k, v, mask, causal, dropout)

    def _by_blocks(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout: float) -> Tensor:
        batch, heads, length, dim = q.shape
        reach, beside = self.reach(causal), 2 if causal else 3
        blocks = (length + reach - 1) // reach
        rest = blocks * reach - length

        def windows(x: Tensor) -> Tensor:
            """(B, H, T, D) as (B, H, N, keys of a block, D)."""
            x = F.pad(x, (0, 0, reach, rest + (beside - 2) * reach))
            x = x.view(*x.shape[:2], blocks + beside - 1, reach, x.shape[-1])
            return torch.cat([x[:, :, first : first + blocks] for first in range(beside)], 3)

        queries = F.pad(q, (0, 0, 0, rest)).view(batch, heads, blocks, reach, dim)
        tokens = torch.ones(1, 1, 1, length, dtype=torch.bool, device=q.device) if mask is None else mask
        readable = windows(tokens.transpose(2, 3).to(q.dtype)).transpose(-1, -2) > 0
        steps = torch.arange(beside * reach, device=q.device)
        apart = steps - reach - steps[:reach, None]
        near = (apart >= -reach) & (apart <= (0 if causal else reach))
        mixed = _mixed(queries, windows(k), windows(v), (near & readable) | (apart == 0), dropout)
        return mixed.flatten(2, 3)[:, :, :length]

    def _by_positions(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The keys of each query picked one by one: more memory than blocks, but no number of blocks, which exporters
        would have to prove for every length."""
        steps, reach = torch.arange(q.shape[2], device=q.device), self.reach(causal)
        apart = torch.arange(-reach, 1 if causal else reach + 1, device=q.device)
        at = steps[:, None] + apart
        inside = (at >= 0) & (at < q.shape[2])
        picked = at.clamp(min=0).minimum(steps[-1]).flatten()

        def windows(x: Tensor) -> Tensor:
            """(B, H, T, D) as (B, H, T, keys of a query, D)."""
            return x.index_select(2, picked).view(*x.shape[:3], len(apart), x.shape[3])

        if mask is not None:
            inside = (inside & windows(mask.transpose(2, 3))[..., 0]) | (apart == 0)
        return _mixed(q[:, :, :, None], windows(k), windows(v), inside[..., None, :])[:, :, :, 0]

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """Zero outside the window."""
        return _weighed(q, k, _near(q.shape[2], self.reach(False), False, None, q.device))

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        """It has no other form."""
        return self.attend(q, k, v)

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: Ring | None, relative: Tensor | None = None
    ) -> tuple[Tensor, Ring]:
        """The new position takes the place of the one that leaves the window."""
        shape = (*k.shape[:2], self.window, k.shape[3])
        keys, values, length = past or Ring(k.new_zeros(shape), v.new_zeros(shape), 0)
        places = torch.arange(self.window, device=k.device)
        here = (places == length % self.window)[:, None]
        keys, values = torch.where(here, k, keys), torch.where(here, v, values)
        return _mixed(q, keys, values, places <= length), Ring(keys, values, length + 1)

    def after(self, k: Tensor, v: Tensor) -> Ring:
        """The last of them, each in its place."""
        places, last = torch.arange(self.window, device=k.device), k.shape[2] - 1
        at = last - torch.remainder(last - places, self.window)
        picked, filled = at.clamp(min=0), (at >= 0)[:, None]
        keys, values = (torch.where(filled, x.index_select(2, picked), x.new_zeros(())) for x in (k, v))
        return Ring(keys, values, k.shape[2])

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> AttentionState:
        """Not offered."""
        raise ConfigError("local attention reads its own sequence; expected softmax or linear attention to the source")

    def read(self, q: Tensor, memory: AttentionState, mask: Tensor | None, position: int) -> Tensor:
        """Not offered."""
        raise ConfigError("local attention reads its own sequence; expected softmax or linear attention to the source")

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """What the blocks multiply, also where a key lies outside the window; all pairs of a short sequence."""
        return 2 * min(queries * keys, self._pairs(queries, causal)) * width

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """The scores and their softmax; of blocks also keys and values of every window, before there are outputs."""
        pairs = self._pairs(queries, causal)
        if queries * keys <= pairs:
            return 2 * batch * heads * queries * keys
        reach = self.reach(causal)
        return 2 * batch * (heads * pairs + pairs // reach * width)

    def _pairs(self, length: int, causal: bool) -> int:
        reach = self.reach(causal)
        return -(-length // reach) * reach * (2 if causal else 3) * reach

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """The ring, however long the sequence is."""
        shape = ("batch", heads, self.window, dim)
        return StateValue("ring_key", shape), StateValue("ring_value", shape)

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> Ring:
        """A ring that has seen as many positions."""
        return Ring(tensors[0], tensors[1], position)


LOCAL = LocalAttention()


def _near(length: int, reach: int, causal: bool, mask: Tensor | None, device: torch.device) -> Tensor:
    """(T, T), or (B, 1, T, T) with a mask (B, 1, 1, T): where a key may be read."""
    steps = torch.arange(length, device=device)
    apart = steps - steps[:, None]
    near = (apart >= -reach) & (apart <= (0 if causal else reach))
    return near if mask is None else (near & mask) | (apart == 0)


def _weighed(q: Tensor, k: Tensor, readable: Tensor) -> Tensor:
    """The softmax of the scores of keys that may be read, (.., queries, keys); in float32 for halves."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # products of halves overflow if they are scaled after
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(~readable, float("-inf"))
    weights: Tensor = scores.softmax(-1)
    return weights.to(q.dtype)


def _mixed(q: Tensor, k: Tensor, v: Tensor, readable: Tensor, dropout: float = 0.0) -> Tensor:
    """Values weighed by :func:`_weighed`."""
    weights = _weighed(q, k, readable)
    return (F.dropout(weights, dropout) if dropout else weights) @ v


def naive_local(q: Tensor, k: Tensor, v: Tensor, window: int, mask: Tensor | None, causal: bool = False) -> Tensor:
    """Each query by itself over the keys that its window lets it read, in float32: the reference; (B, H, T, D)."""
    outputs = []
    for at in range(q.shape[2]):
        first = max(0, at - (window - 1 if causal else window // 2))
        last = at + 1 if causal else at + window // 2 + 1
        keys, values = k[:, :, first:last].float(), v[:, :, first:last].float()
        scores = q[:, :, at : at + 1].float() @ keys.mT * q.shape[-1] ** -0.5
        if mask is not None:
            readable = mask[..., first:last].clone()
            readable[..., at - first] = True
            scores = scores.masked_fill(~readable, float("-inf"))
        outputs.append(scores.softmax(-1) @ values)
    return torch.cat(outputs, 2).to(q.dtype)
