"""Angles of positions, the checks of shapes and lengths, and what happens to the sums in the end."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice

__all__ = ["EPS", "NORMALIZE", "Turns", "check", "finished", "own_scale", "turns", "working_dtype"]

EPS = 1e-6
"""Smallest denominator: a query without any positive channel gets 0."""
NORMALIZE = ("denominator", "rms", "layer")
"""Of the weighted sum: by the sum of the weights (cosFormer, equation 10), or by RMSNorm or LayerNorm over each head's
channels instead, whose gradients are bounded (NormAttention; Qin et al. 2022, "The Devil in Linear Transformer")."""


class Turns(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)`` or, where positions differ between sequences, ``(B, 1, T, 1)``."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> Turns:
        return Turns(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def turns(positions: Tensor, max_length: int | Tensor, dtype: torch.dtype) -> Turns:
    """Of positions ``(T,)`` or ``(B, T)``: the angle is pi/2 * position / max_length, computed in float64; one
    ``max_length`` for all, or ``(B, 1)``."""
    longest = max_length.double() if isinstance(max_length, Tensor) else max_length
    angles = positions.double() * (math.pi / 2 / longest)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return Turns(angles.sin().to(dtype), angles.cos().to(dtype))


def own_scale(x: Tensor, key_mask: Tensor | None) -> tuple[Tensor, int | Tensor]:
    """Positions and M of self-attention of ``x`` ``(B, H, T, D)`` that is scaled by each sequence's own length.

    Positions count tokens, wherever the padding is: ``(T,)`` and T without a mask, else ``(B, T)`` and ``(B, 1)``.
    Padding has the position of a token beside it, so that its weights stay as harmless as a token's.
    """
    if key_mask is None:
        return torch.arange(x.shape[2], device=x.device), x.shape[2]
    counted = key_mask.cumsum(1, dtype=torch.long)
    return (counted - 1).clamp(min=0), counted[:, -1:].clamp(min=1)


def working_dtype(x: Tensor) -> torch.dtype:
    """float32, or float64 for float64 inputs: sums over thousands of positions do not fit into halves."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def finished(sums: Tensor, weights: Tensor | None, normalize: str, eps: float) -> Tensor:
    """From weighted sums ``(..., D)`` and the sums of the weights ``(..., 1)`` to outputs ``(..., D)``."""
    if normalize == "denominator":
        assert weights is not None
        return sums / weights.clamp(min=eps)
    if normalize == "layer":
        sums = sums - sums.mean(-1, keepdim=True)
    return sums * (sums.square().mean(-1, keepdim=True) + eps).rsqrt()


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
    """Raise a ConfigError for inputs that no form of the attention can compute."""
    if (
        not q.ndim == k.ndim == v.ndim == 4
        or k.shape != (*q.shape[:2], k.shape[-2], q.shape[-1])
        or v.shape[:3] != k.shape[:3]
    ):
        raise ConfigError(
            f"queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}; expected (B, H, T, D),"
            " (B, H, S, D) and (B, H, S, Dv)"
        )
    if not q.dtype == k.dtype == v.dtype or not q.is_floating_point():
        raise ConfigError(f"queries are {q.dtype}, keys {k.dtype}, values {v.dtype}; expected one floating type")
    if normalize not in NORMALIZE:
        raise unknown_choice("normalisation of linear attention", normalize, NORMALIZE)
    if max_length is None and (causal or any(given is not None for given in positions)):
        raise ConfigError(
            "max_length is None, each sequence's own length; expected a number where attention is causal or positions"
            " are given, since decoding does not know the length beforehand"
        )
    if torch.compiler.is_exporting():  # lengths are open and positions have no values
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
    if max_length is not None:
        _check_positions(q, k, max_length, positions)


def _check_positions(q: Tensor, k: Tensor, max_length: int, positions: tuple[Tensor | None, Tensor | None]) -> None:
    for x, given in zip((q, k), positions, strict=True):
        if given is not None and given.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
            raise ConfigError(f"positions {tuple(given.shape)} for {tuple(x.shape)}; expected (T,) or (B, T)")
        if given is not None and given.numel() and int(given.min()) < 0:
            raise ConfigError(f"a position is {int(given.min())}; expected 0 or more, below max_length {max_length}")
    if max_length < 1:
        raise ConfigError(f"max_length is {max_length}; expected at least 1")
    counts = (
        x.shape[2] if at is None or not at.numel() else int(at.max()) + 1
        for x, at in zip((q, k), positions, strict=True)
    )
    longest = max(counts)
    if longest > max_length:
        raise ConfigError(
            f"a sequence has {longest} positions, this linear attention was made for max_length {max_length}: beyond it"
            " weights turn negative; build the model with a larger max_length"
        )
