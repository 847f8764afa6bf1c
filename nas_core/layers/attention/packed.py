"""Sequences one behind the other, without padding in memory, and the same as one padded batch."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from nas_core.errors import ConfigError


def padded(offsets: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
    """Queries, keys and values ``(L, H, D)`` as ``(B, H, T, D)``, the mask ``(B, T)`` of their tokens, and where in
    ``B T`` positions those are, ``(L,)``.

    Args:
        offsets: ``(B + 1,)``, where each sequence begins, and L.

    Raises:
        ConfigError: other shapes, or offsets that do not ascend from 0 to L.
    """
    if not q.ndim == k.ndim == v.ndim == 3 or not len(q) == len(k) == len(v):
        raise ConfigError(
            f"packed queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}; expected (L, H, D)"
        )
    starts = offsets.flatten().tolist()  # the one time that the host waits: shapes depend on it
    lengths = [stop - start for start, stop in pairwise(starts)]
    if offsets.ndim != 1 or not lengths or starts[0] or starts[-1] != len(q) or min(lengths) < 1:
        raise ConfigError(f"offsets {starts[:8]} of {len(q)} positions; expected 0, .., {len(q)}")
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    at = mask.flatten().nonzero()[:, 0].to(q.device, non_blocking=True)

    def filled(x: Tensor) -> Tensor:
        table = x.new_zeros(mask.numel(), *x.shape[1:]).index_copy(0, at, x)
        return table.view(*mask.shape, *x.shape[1:]).transpose(1, 2)

    return (filled(q), filled(k), filled(v)), mask.to(q.device, non_blocking=True), at


def unpadded(x: Tensor, at: Tensor) -> Tensor:
    """The tokens of ``(B, H, T, D)``, at those of its ``B T`` positions, one behind the other: ``(L, H, D)``."""
    return x.transpose(1, 2).flatten(0, 1).index_select(0, at)
