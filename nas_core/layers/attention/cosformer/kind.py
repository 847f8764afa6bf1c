"""Linear attention (cosFormer) as a kind: its settings, its forms, and what exported decoding steps need.

Shapes: B batch, H heads, D head dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.attention import cosformer_attention
from nas_core.layers.attention.cosformer.forms import FORMS
from nas_core.layers.attention.cosformer.naive import cosformer_naive
from nas_core.layers.attention.cosformer.normalize import NORMALIZE
from nas_core.layers.attention.cosformer.positions import Turns, turns
from nas_core.layers.attention.cosformer.state import CosformerState
from nas_core.layers.attention.cosformer.streaming import CAUSAL_BLOCK, NONCAUSAL_BLOCK
from nas_core.layers.attention.kinds import AttentionKind, StateValue


@dataclass(frozen=True)
class LinearAttention(AttentionKind):
    """Linear attention with cosine reweighting, see :func:`cosformer_attention`."""

    max_length: int | None = 1024
    """M of the cosine and the longest sequence; part of the model, since weights depend on it. None: each sequence's
    own length, for self-attention that sees all of it."""
    normalize: str = "denominator"
    """denominator, rms or layer."""
    form: str = "auto"
    """One of FORMS, which compute the same; ``auto`` is chosen by device, numbers and length. ``fla`` computes causal
    attention on CUDA; on other devices a network that asks for it takes what ``auto`` is there."""
    name: str = "linear"
    colour = "#d1662b"
    letter = "L"
    reads_positive_parts = True
    is_bounded = True
    reads_positions = True
    masks_memory = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ConfigError(f"max_length of linear attention is {self.max_length}; expected at least 1")
        if self.normalize not in NORMALIZE:
            raise unknown_choice("normalisation of linear attention", self.normalize, NORMALIZE)
        if self.form not in FORMS:
            raise unknown_choice("form of linear attention", self.form, FORMS)

    def scaled(self, max_length: int | None) -> LinearAttention:
        """With another M."""
        return replace(self, max_length=max_length)

    @property
    def longest(self) -> int | None:
        """M: beyond it weights turn negative."""
        return self.max_length

    @property
    def _decoded(self) -> int:
        if self.max_length is None:
            raise ConfigError(
                "linear attention that decodes needs a max_length: it cannot know how long a sequence gets"
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
        relative: Tensor | None = None,
        dropout: float = 0.0,
        key_positions: Tensor | None = None,
    ) -> Tensor:
        """In the form that was asked for; it has no weights that could be dropped. ``key_positions`` are the network's
        own and not read: they lie below :attr:`longest`."""
        return cosformer_attention(
            q, k, v, max_length=self.max_length, causal=causal, key_mask=None if mask is None else mask[:, 0, 0],
            key_positions=key_positions, normalize=self.normalize, bounded=True,
            form="auto" if self.form == "fla" and not q.is_cuda else self.form,
        )  # fmt: skip

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        """What each position's unit vector gives. Where heads are normalised instead of divided by the sum of weights,
        the weights are divided too."""
        each = torch.eye(q.shape[2], dtype=q.dtype, device=q.device).expand(*q.shape[:2], -1, -1)
        return cosformer_naive(q, k, each, max_length=self.max_length)

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        """Without an autograd function of our own, which exporters do not know."""
        return cosformer_attention(q, k, v, max_length=self.max_length, normalize=self.normalize, form="chunked")

    def step(
        self, q: Tensor, k: Tensor, v: Tensor, past: CosformerState | None, relative: Tensor | None = None
    ) -> tuple[Tensor, CosformerState]:
        """Add the position to the sums and read them."""
        state = past or CosformerState.empty(k, v.shape[-1], self._decoded, self.normalize)
        return state.step(q, k, v), state

    def after(self, k: Tensor, v: Tensor) -> CosformerState:
        """The sums over all of them."""
        return CosformerState.of(k, v, self._decoded, normalize=self.normalize)

    def memory(self, k: Tensor, v: Tensor, mask: Tensor | None, positions: Tensor | None) -> CosformerState:
        """The sums over all keys that may be read."""
        tokens = None if mask is None else mask[:, 0, 0]
        return CosformerState.of(k, v, self._decoded, tokens, positions, self.normalize, bounded=True)

    def read(self, q: Tensor, memory: CosformerState, mask: Tensor | None, position: int) -> Tensor:
        """The sums at the angle of that position."""
        return memory.read(q, position)

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        """Keys summed once and read by each query, with features of twice the head dimension (which the mFormer
        paper's figures leave out)."""
        return (queries + keys) * 2 * (width // heads) * width

    def held(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        """The sums; of a block of queries what is positive, their features, which are twice as wide, and outputs,
        beside those of the block before and the features of the last block of keys, less the projected outputs, which
        are counted elsewhere and not there yet; or in the end all outputs with heads joined. Causal attention holds a
        block with its pairs, and after its outputs the features of all keys and what they are made of."""
        sums, block = 2 * width * width // heads, min(keys, CAUSAL_BLOCK)
        if causal:
            return batch * (sums + max(4 * keys * width, block * (5 * width + heads * block)))
        first = min(queries, NONCAUSAL_BLOCK)
        rows = 4 * first + min(queries - first, first) + 2 * ((keys - 1) % NONCAUSAL_BLOCK + 1)
        return batch * (sums + max(queries, rows - queries) * width)

    def held_for_memory(self, keys: int, width: int) -> tuple[int, int]:
        """Keys and values; keys made positive, both halves of their features, and those."""
        return 2 * keys * width, 5 * keys * width

    def state_values(self, heads: int, dim: int, length: str) -> tuple[StateValue, ...]:
        """Sums of constant size."""
        sums = StateValue("sums", ("batch", heads, 2 * dim, dim))
        return sums, StateValue("weights", ("batch", heads, 2 * dim), positive=True)

    def step_table(self, rows: int) -> Tensor:
        """Sine and cosine of each position's angle, ``(rows, 2)``."""
        at = turns(torch.arange(rows), self._decoded, torch.float32)
        return torch.cat([at.sin, at.cos], 1)

    def restored(self, tensors: Sequence[Tensor], position: Tensor, row: Tensor | None) -> CosformerState:
        """The sums, read at the angle in the row."""
        assert row is not None
        sin, cos = row.chunk(2)
        return _StateAt(tensors[0], tensors[1], self, Turns(sin, cos))


class _StateAt(CosformerState):
    """A state whose step is at an angle that is a tensor: a graph has no position of its own."""

    def __init__(self, sums: Tensor, weights: Tensor, kind: LinearAttention, at: Turns) -> None:
        super().__init__(sums, weights, kind._decoded, 0, kind.normalize)
        self.at = at

    def _features(self, x: Tensor, position: int) -> Tensor:
        positive = torch.relu(x)
        return torch.cat([positive * self.at.sin, positive * self.at.cos], -1)


LINEAR = LinearAttention()
