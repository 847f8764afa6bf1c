"""Input checks, cosines of positions and normalisation of linear attention."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.torch_modes import is_exporting

EPS = 1e-6
"""Smallest denominator; a query without a positive channel gives 0."""
NORMALIZE = ("denominator", "rms", "layer")
"""Normalisation of the weighted sum: divide by the sum of weights (cosFormer, equation 10), or apply RMSNorm or
LayerNorm to each head (Qin et al. 2022, "The Devil in Linear Transformer"), which bounds gradients."""


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the accumulation type: float64 for float64 inputs, else float32."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def normalized(sums: Tensor, weights: Tensor | None, normalize: str, eps: float) -> Tensor:
    """Normalise sums ``(..., D)``; ``weights`` are the sums of weights ``(..., 1)``."""
    if normalize == "denominator":
        assert weights is not None
        return sums / weights.clamp(min=eps)
    if normalize == "layer":
        sums = sums - sums.mean(-1, keepdim=True)
    return sums * (sums.square().mean(-1, keepdim=True) + eps).rsqrt()


class CosTable(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)``, or ``(B, 1, T, 1)`` if sequences differ."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> CosTable:
        return CosTable(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def cos_table(positions: Tensor, max_length: int | Tensor, dtype: torch.dtype) -> CosTable:
    """Compute sine and cosine of ``pi / 2 * position / max_length`` in float64.

    Args:
        positions: ``(T,)`` or ``(B, T)``.
        max_length: a number, or ``(B, 1)``.
    """
    longest = max_length.double() if isinstance(max_length, Tensor) else max_length
    angles = positions.double() * (math.pi / 2 / longest)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return CosTable(angles.sin().to(dtype), angles.cos().to(dtype))


def own_scale(x: Tensor, key_mask: Tensor | None) -> tuple[Tensor, int | Tensor]:
    """Return positions and M for self-attention of ``x`` ``(B, H, T, D)`` with each sequence's own length as M.

    Returns:
        ``(T,)`` and T without a mask, else ``(B, T)`` and ``(B, 1)``. Padding is not counted and has a neighbour's
            position.
    """
    if key_mask is None:
        return torch.arange(x.shape[2], device=x.device), x.shape[2]
    counted = key_mask.cumsum(1, dtype=torch.long)
    return (counted - 1).clamp(min=0), counted[:, -1:].clamp(min=1)


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    max_length: int | None,
    causal: bool,
    key_mask: Tensor | None,
    normalize: str,
    positions: tuple[Tensor | None, Tensor | None] = (None, None),
) -> None:
    """Raise ``ConfigError`` for unsupported shapes, types or lengths; values of positions are not checked."""
    if (
        not q.ndim == k.ndim == v.ndim == 4
        or k.shape != (*q.shape[:2], k.shape[-2], q.shape[-1])
        or v.shape[:3] != k.shape[:3]
        or not q.dtype == k.dtype == v.dtype
    ):
        inputs = ", ".join(f"{name} {x.dtype} {tuple(x.shape)}" for name, x in zip("qkv", (q, k, v), strict=True))
        raise ConfigError(f"linear attention got {inputs}; expected (B, H, T, D), (B, H, S, D), (B, H, S, Dv)")
    if normalize not in NORMALIZE:
        raise unknown_choice("normalisation of linear attention", normalize, NORMALIZE)
    if max_length is None and (causal or any(table is not None for table in positions)):
        raise ConfigError(
            "max_length is None, each sequence's own length; expected a number where attention is causal or positions"
            " are given, since decoding does not know the length beforehand"
        )
    if is_exporting():  # lengths are symbolic, and positions have no values
        return
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != (k.shape[0], k.shape[2])):
        raise ConfigError(
            f"key mask is {key_mask.dtype} {tuple(key_mask.shape)}; expected bool {(k.shape[0], k.shape[2])}, True at"
            " tokens"
        )
    if (causal or max_length is None) and q.shape[2] != k.shape[2]:
        raise ConfigError(
            f"{q.shape[2]} queries and {k.shape[2]} keys in {'causal attention' if causal else 'self-attention'};"
            " expected equal lengths"
            + (" (to decode step by step, keep a CosformerState)" if causal else " (give max_length to read another)")
        )
    for x, given_positions in zip((q, k), positions, strict=True):
        if given_positions is not None and given_positions.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
            raise ConfigError(f"positions {tuple(given_positions.shape)} for {tuple(x.shape)}; expected (T,) or (B, T)")
        if given_positions is None and max_length is not None:
            check_length(x.shape[2], max_length)


def check_length(length: int, max_length: int) -> None:
    """Raise ``ConfigError`` above the maximum length, beyond which weights become negative."""
    if length > max_length:
        raise ConfigError(
            f"a sequence has {length} positions, this linear attention was made for max_length {max_length}: beyond it"
            " weights turn negative; build the model with a larger max_length"
        )
