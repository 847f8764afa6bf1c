"""Sequences one behind the other, without padding in memory, and the same as one padded batch."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError

__all__ = ["padded", "unpadded"]


def padded(offsets: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Queries, keys and values ``(L, H, D)`` as ``(B, H, T, D)``, and the mask ``(B, T)`` of their tokens.

    Args:
        offsets: ``(B + 1,)``, where each sequence begins, and L.

    Raises:
        ConfigError: other shapes, or offsets that do not ascend from 0 to L.
    """
    if not q.ndim == k.ndim == v.ndim == 3 or not len(q) == len(k) == len(v):
        raise ConfigError(
            f"packed queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}; expected (L, H, D)"
        )
    good = offsets.ndim == 1 and len(offsets) > 1 and not int(offsets[0]) and int(offsets[-1]) == len(q)
    if not good or bool((offsets.diff() < 1).any()):
        raise ConfigError(f"offsets {offsets.flatten()[:8].tolist()} of {len(q)} positions; expected 0, .., {len(q)}")
    lengths = offsets.diff()
    mask = torch.arange(int(lengths.max()), device=q.device) < lengths.to(q.device)[:, None]

    def filled(x: Tensor) -> Tensor:
        table = x.new_zeros(*mask.shape, *x.shape[1:])
        table[mask] = x
        return table.transpose(1, 2)

    return (filled(q), filled(k), filled(v)), mask


def unpadded(x: Tensor, mask: Tensor) -> Tensor:
    """The tokens of ``(B, H, T, D)`` one behind the other: ``(L, H, D)``."""
    return x.transpose(1, 2)[mask]
