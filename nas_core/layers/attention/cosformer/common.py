"""Input checks and position cosines of linear attention."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.torch_modes import is_exporting

EPS = 1e-6
"""Smallest denominator of linear attention."""


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of sums over keys: float64 for float64 inputs, otherwise float32."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


class CosTable(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)``, or ``(B, 1, T, 1)`` if they differ between sequences."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> CosTable:
        return CosTable(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def cos_table(positions: Tensor, max_length: int | Tensor, dtype: torch.dtype) -> CosTable:
    """Compute sine and cosine of ``pi / 2 * position / max_length``.

    Args:
        positions: ``(T,)`` or ``(B, T)``.
        max_length: a number, or one per sequence ``(B, 1)``.
    """
    longest = max_length.double() if isinstance(max_length, Tensor) else max_length
    angles = positions.double() * (math.pi / 2 / longest)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return CosTable(angles.sin().to(dtype), angles.cos().to(dtype))


def sequence_scale(x: Tensor, key_mask: Tensor | None) -> tuple[Tensor, int | Tensor]:
    """Return token positions, and each sequence's number of tokens as maximum length.

    Returns:
        ``(T,)`` and T without a mask, otherwise ``(B, T)`` and ``(B, 1)``.
    """
    if key_mask is None:
        return torch.arange(x.shape[2], device=x.device), x.shape[2]
    counts = key_mask.cumsum(1, dtype=torch.long)
    return (counts - 1).clamp(min=0), counts[:, -1:].clamp(min=1)


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    max_length: int | None,
    causal: bool,
    key_mask: Tensor | None,
    positions: tuple[Tensor | None, Tensor | None] = (None, None),
) -> None:
    """Raise ``ConfigError`` for unsupported shapes, dtypes or lengths."""
    if (
        not q.ndim == k.ndim == v.ndim == 4
        or k.shape != (*q.shape[:2], k.shape[-2], q.shape[-1])
        or v.shape[:3] != k.shape[:3]
        or not q.dtype == k.dtype == v.dtype
    ):
        inputs = ", ".join(f"{name} {x.dtype} {tuple(x.shape)}" for name, x in zip("qkv", (q, k, v), strict=True))
        raise ConfigError(
            f"linear attention got {inputs}; expected one dtype, and shapes (B, H, T, D), (B, H, S, D) and"
            " (B, H, S, Dv)"
        )
    if max_length is None and (causal or any(table is not None for table in positions)):
        raise ConfigError(
            "max_length is None, but causal linear attention, or one with positions, needs a number; give max_length"
        )
    if is_exporting():  # lengths are symbolic, and positions have no values
        return
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != (k.shape[0], k.shape[2])):
        raise ConfigError(
            f"key_mask is {key_mask.dtype} {tuple(key_mask.shape)}; expected torch.bool {(k.shape[0], k.shape[2])}"
        )
    if (causal or max_length is None) and q.shape[2] != k.shape[2]:
        raise ConfigError(
            f"{q.shape[2]} queries and {k.shape[2]} keys in {'causal attention' if causal else 'self-attention'};"
            " expected equal lengths"
            + (" (use CosformerState for decoding)" if causal else " (give max_length for cross-attention)")
        )
    for x, indices in zip((q, k), positions, strict=True):
        if indices is not None and indices.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
            raise ConfigError(
                f"positions have shape {tuple(indices.shape)} for queries or keys of shape {tuple(x.shape)};"
                " expected (T,) or (B, T)"
            )
        if indices is None and max_length is not None:
            check_length(x.shape[2], max_length)


def check_length(length: int, max_length: int) -> None:
    if length > max_length:  # weights would be negative
        raise ConfigError(
            f"sequence of length {length} exceeds max_length {max_length} of linear attention; shorten it, or build the"
            " model with a larger max_length"
        )
