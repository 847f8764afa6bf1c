"""Input checks, cosines of positions and normalisation, for every form of linear attention."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.torch_modes import is_exporting

EPS = 1e-6
"""Smallest denominator: a query without a positive channel gets 0."""
NORMALIZE = ("denominator", "rms", "layer")
"""Divisor of the weighted sum: the sum of the weights (cosFormer, equation 10), or RMSNorm or LayerNorm of each head's
channels, whose gradients are bounded (Qin et al. 2022, "The Devil in Linear Transformer")."""


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the type of sums over positions: float32, or float64 for float64 inputs."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def normalized(sums: Tensor, weights: Tensor | None, normalize: str, eps: float) -> Tensor:
    """Normalise weighted sums ``(..., D)`` with sums of weights ``(..., 1)``."""
    if normalize == "denominator":
        assert weights is not None
        return sums / weights.clamp(min=eps)
    if normalize == "layer":
        sums = sums - sums.mean(-1, keepdim=True)
    return sums * (sums.square().mean(-1, keepdim=True) + eps).rsqrt()


class CosTable(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)``, or ``(B, 1, T, 1)`` where positions differ between sequences."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> CosTable:
        return CosTable(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def cos_table(positions: Tensor, max_length: int | Tensor, dtype: torch.dtype) -> CosTable:
    """Compute sines and cosines of pi/2 * position / max_length in float64.

    Args:
        positions: ``(T,)`` or ``(B, T)``.
        max_length: a number, or ``(B, 1)``.
    """
    longest = max_length.double() if isinstance(max_length, Tensor) else max_length
    angles = positions.double() * (math.pi / 2 / longest)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return CosTable(angles.sin().to(dtype), angles.cos().to(dtype))


def own_scale(x: Tensor, key_mask: Tensor | None) -> tuple[Tensor, int | Tensor]:
    """Return positions and M of self-attention of ``x`` ``(B, H, T, D)`` scaled by the length of each sequence.

    Returns:
        ``(T,)`` and T without a mask, else ``(B, T)`` and ``(B, 1)``. Positions count tokens only; padding has the
        position of a neighbouring token.
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
    """Check the inputs of linear attention, but not the values of positions.

    Raises:
        ConfigError: shapes, types or lengths that no form can compute.
    """
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
    for x, at in zip((q, k), positions, strict=True):
        if at is not None and at.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
            raise ConfigError(f"positions {tuple(at.shape)} for {tuple(x.shape)}; expected (T,) or (B, T)")
        if at is None and max_length is not None:
            check_length(x.shape[2], max_length)


def check_length(length: int, max_length: int) -> None:
    """Check a length against the maximum of linear attention, beyond which weights become negative.

    Raises:
        ConfigError: it is larger.
    """
    if length > max_length:
        raise ConfigError(
            f"a sequence has {length} positions, this linear attention was made for max_length {max_length}: beyond it"
            " weights turn negative; build the model with a larger max_length"
        )
